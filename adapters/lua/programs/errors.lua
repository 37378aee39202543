-- SPDX-License-Identifier: MIT
-- Errors that pop many frames, through Lua and C functions.
local caught = 0
local function deep(n, f, ...) if n == 0 then return f(...) end return (deep(n - 1, f, ...)) end

-- A hundred protected calls, each catching what the inner one raises again.
local function levels(n)
  if n == 0 then deep(10, error, "innermost") end
  local ok, message = pcall(deep, n % 7, levels, n - 1)
  caught = caught + 1
  if n % 3 ~= 0 then error(message, 0) end
  return message
end
for _ = 1, 20 do pcall(levels, 100) end

-- Callbacks of C functions raise errors.
local function raise(x) if x == nil or #tostring(x) % 3 == 1 then deep(5, error, x) end return x end
local text = ("word and another "):rep(20)
for i = 1, 50 do
  if not pcall(string.gsub, text, "%w+", raise) then caught = caught + 1 end
  if not pcall(string.gsub, text, "%a", function() return deep(i % 9, pcall, error) and {} end) then caught = caught + 1 end
  if not pcall(table.sort, {5, 2, 8, 1, 9, 4, i}, function(a, b) return deep(3, raise, a * b) < 30 end) then
    caught = caught + 1
  end
  if not pcall(load, function() deep(i % 5, error, "no source") end) then caught = caught + 1 end
  if not pcall(require, "no.such.module") then caught = caught + 1 end
  if not pcall(next, {}, "no such key") then caught = caught + 1 end
end

-- Handlers: they return, fail, fail without end, and look at the stack.
for i = 1, 30 do
  caught = caught + #tostring(select(2, xpcall(deep, function(m) return deep(4, tostring, m) end, i, error, "x")))
  caught = caught + #tostring(select(2, xpcall(deep, function(m) error(m) end, i, error, "x")))
  caught = caught + #select(2, xpcall(deep, debug.traceback, i, error, "x"))
end

-- Metamethods that raise.
local bad = setmetatable({}, {
  __index = function(_, k) return deep(k, error, "index") end,
  __newindex = function() deep(2, error, "newindex") end,
  __eq = function() error("eq") end, __lt = function() error("lt") end,
  __len = function() error("len") end, __call = function(_, n) return deep(n, error, "call") end,
  __unm = function() error() end, __concat = function() error("concat") end,
  __tostring = function() deep(6, error, "tostring") end})
for i = 1, 30 do
  for _, f in ipairs{function() return bad[i] end, function() bad.x = 1 end, function() return bad < bad end,
      function() return #bad end, function() return bad(i) end, function() return -bad end,
      function() return bad .. bad end, function() return tostring(bad) end,
      function() return bad == setmetatable({}, getmetatable(bad)) end,
      function() return nil + 1 end, function() return ({}).x.y end, function() return ("x"):no() end} do
    local ok = deep(i % 8, pcall, deep, i % 6, f)
    if not ok then caught = caught + 1 end
  end
end

-- Errors that leave loops and coroutines.
for i = 1, 200 do
  local ok = pcall(function()
    for k = 1, 10 do for _, v in ipairs{1, 2, 3} do if k * v == i % 25 then error(k) end end end
    coroutine.wrap(function() deep(i % 13, error, "in a coroutine") end)()
  end)
  if not ok then caught = caught + 1 end
end
print(caught)
