-- SPDX-License-Identifier: MIT
-- Tail calls, functions that are collected, variable arguments, calls by metamethods.
local count = 0
local function deep(n, f, ...) if n == 0 then return f(...) end return (deep(n - 1, f, ...)) end

-- Tail calls: to itself, to others, to C functions, from functions with variable arguments.
local function loop(n) if n == 0 then return 0 end return loop(n - 1) end
local ping, pong
function ping(n, ...) if n == 0 then return select("#", ...) end return pong(n - 1, n, ...) end
function pong(n, x, ...) if n == 0 then return x end return ping(n - 1, ...) end
local function to_c(...) return select("#", ...) end
local callable = setmetatable({}, {__call = function(_, ...) return to_c(...) end})
local function by_meta(...) return callable(...) end
for i = 1, 300 do
  count = count + loop(i) + deep(i % 10, ping, i, 1, 2, 3) + to_c(i, i) + by_meta(1, 2, i)
  count = count + (select(2, pcall(by_meta, i)))
end

-- Functions that live for one call, by the thousand. Their memory is used again.
local chunks = 0
for i = 1, 3000 do
  local lines = ("\n"):rep(i % 17)
  local f = load(lines .. "local function f" .. i .. "(n)\n if n == 0 then return 0 end\n"
    .. lines .. " return 1 + f" .. i .. "(n - 1) end\n return f" .. i .. "(...)", "=chunk" .. i)
  chunks = chunks + f(i % 20)
  if i % 100 == 0 then collectgarbage() end
end
collectgarbage("generational")
for i = 1, 2000 do chunks = chunks + load("local x = ... \n return (function(y) return x + y end)(1)")(i) end
collectgarbage("incremental")

-- A function without information about lines.
local stripped = load(string.dump(function(n) local s = 0 for i = 1, n do s = s + i end return s end, true))
count = count + deep(5, stripped, 100)

-- Metamethods, iterators, variable arguments.
local object = setmetatable({}, {
  __index = function(_, k) return deep(k % 5, function() return k end) end,
  __add = function(a, b) return deep(2, to_c, a, b) end, __le = function() return true end,
  __len = function() return deep(3, to_c, 1) end, __close = function() count = count + 1 end,
  __pairs = function(t) return function(_, i) i = (i or 0) + 1; if i < 20 then return i, i end end, t end})
for i = 1, 500 do
  local scoped <close> = object
  count = count + object[i] + (object + 1) + #object + (object <= object and 1 or 0)
  for _, v in pairs(object) do count = count + v end
  for k in string.gmatch("a few words here", "%a+") do count = count + #k end
end
local function spread(...) local a, b = ... return ... end
for i = 1, 200 do count = count + select("#", spread(table.unpack({}, 1, i))) end

-- C functions that call Lua functions, which call C functions.
local sorted = {}
for i = 1, 500 do sorted[i] = (i * 7919) % 503 end
table.sort(sorted, function(a, b) return deep(2, math.min, a, b) == a and a ~= b end)
local text = string.gsub(("x"):rep(500), "x", function(x) return (string.gsub(x, "x", string.upper)) end)
print(count, chunks, sorted[1], #text)
