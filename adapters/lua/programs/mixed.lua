-- SPDX-License-Identifier: MIT
-- Lua functions call C functions, which call Lua functions, and so on, with coroutines and errors.
local call = host_call or function(f, ...) return f(...) end -- luacheck: ignore
local sum = 0
local function add(n) sum = (sum * 31 + n) % 1000003 return n end
local function deep(n, f, ...) if n == 0 then return f(...) end return (deep(n - 1, f, ...)) end

-- Sorting that compares by a substitution that calls the host, and so on, to a given depth.
local function nest(depth)
  if depth == 0 then return add(1) end
  local t = {3, 1, 2, depth}
  table.sort(t, function(a, b)
    local text = ("ab"):gsub("%a", function(c) return c .. call(nest, a == b and 0 or depth - 1) end)
    return (a < b) == (#text > 0)
  end)
  return add(t[1])
end
for depth = 0, 2 do nest(depth) end

-- C functions in C functions: each level is another way to call.
local ways = {
  function(f, n) return select(2, pcall(f, n)) end,
  function(f, n) return select(2, xpcall(f, debug.traceback, n)) end,
  function(f, n) return call(f, n) end,
  function(f, n) local r ("x"):gsub("x", function() r = f(n) end) return r end,
  function(f, n) return getmetatable(setmetatable({}, {__index = function() return f(n) end})).__index() end,
  function(f, n) return setmetatable({}, {__index = function() return f(n) end}).x end,
  function(f, n) return #setmetatable({}, {__len = function() return f(n) end}) end,
  function(f, n) return load(coroutine.wrap(function() coroutine.yield("return ...") end))(f(n)) end,
  function(f, n) return coroutine.wrap(function() return f(n) end)() end,
  function(f, n) return select(2, coroutine.resume(coroutine.create(function() return deep(3, f, n) end))) end,
}
local seed = 1
local function random(n) seed = (seed * 1103515245 + 12345) % 2147483648 return seed // 65536 % n + 1 end
local function any(n)
  if n == 0 then return add(2) end
  for _ = 1, random(2) do ways[random(#ways)](any, n - 1) end
  return deep(random(4), add, n)
end
for _ = 1, 30 do any(7) end

-- Coroutines that yield at any depth, in a protected call, in a loop, and from inside C functions.
local function walks(n)
  if n > 0 then
    walks(n - 1)
    coroutine.yield(n)
    pcall(walks, n - 2)
    coroutine.yield(-n)
    if n % 3 == 0 then pcall(function() deep(n, coroutine.yield, n) error("after a yield") end) end
    call(add, n)
  end
end
for n = 1, 7 do
  for v in coroutine.wrap(function() walks(n) end) do add(v % 97) nest(v % 2) end
end

-- Coroutines that catch errors, and go on: their frames lose their machine frames.
local function survives(n)
  for i = 1, n do
    local ok = pcall(deep, i % 5, function()
      if i % 2 == 0 then coroutine.yield(i) end
      local ok = pcall(deep, 3, error, "inner")
      deep(4, nest, 1)
      coroutine.yield(ok and 1 or 2)
      deep(2, error, "outer")
    end)
    add(ok and 1 or 2)
    deep(i % 4, nest, 1)
    coroutine.yield(i)
  end
  error("the end")
end
for n = 1, 6 do
  local one = coroutine.create(function() deep(n, survives, n) end)
  local other = coroutine.create(function() pcall(deep, n, survives, n) return pcall(survives, 2) end)
  while coroutine.status(one) ~= "dead" or coroutine.status(other) ~= "dead" do
    coroutine.resume(one)
    call(coroutine.resume, other)
    add(n)
  end
end

-- A tree of coroutines, each resumed by C functions on top of others.
local function tree(n)
  if n == 0 then coroutine.yield(1) return end
  for _, f in ipairs{coroutine.wrap(tree), coroutine.wrap(tree)} do
    for _ = 1, 2 do coroutine.yield(pcall(call, f, n - 1) and n or 0) end
  end
end
for v in coroutine.wrap(function() tree(4) end) do add(v) end

-- Variables to close that call, yield and fail.
local function closes(n)
  local _ <close> = setmetatable({}, {__close = function() deep(2, nest, 1) if n % 2 == 0 then coroutine.yield(n) end end})
  if n % 3 == 0 then error(n) end
  return n
end
local co = coroutine.wrap(function() for n = 1, 12 do pcall(deep, n % 4, closes, n) end return nil end)
for v in co do add(v) end
local unfinished = coroutine.create(function()
  local _ <close> = setmetatable({}, {__close = function() any(4) end})
  coroutine.yield()
end)
coroutine.resume(unfinished)
coroutine.close(unfinished)

-- Errors that leave C functions and coroutines at once, and handlers that call on.
for i = 1, 40 do
  local ok = xpcall(deep, function() return any(2) end, i % 7, function()
    table.sort({3, 1, 2}, function() return ("x"):gsub("x", function() call(deep, i % 3, error, "out") end) end)
  end)
  add(ok and 1 or 2)
  pcall(coroutine.wrap(function() call(function() deep(3, error, "in a coroutine") end) end))
end
setmetatable({}, {__gc = function() any(3) end})
collectgarbage()
print(sum)
