-- SPDX-License-Identifier: MIT
-- Variables to close and finalizers: they run in returns, in errors, in collections, at the end.
local closed, finalized = 0, 0
local function deep(n, f, ...) if n == 0 then return f(...) end return (deep(n - 1, f, ...)) end
local function closes(f) return setmetatable({}, {__close = f}) end
local function counts() deep(4, function() closed = closed + 1 end) end
local function fails() closed = closed + 1; deep(3, error, "while closing") end

local function several(how, n)
  local a <close> = closes(counts)
  for i = 1, n do
    local b <close> = closes(i % 4 == 0 and how == "fails" and fails or counts)
    if how == "breaks" and i == 3 then break end
    if how == "returns" and i == 4 then return deep(2, tostring, i) end
    if how == "error" and i == 5 then deep(6, error, i) end
    local c <close> = closes(counts)
  end
  for _ in next, {1, 2, 3}, nil, closes(counts) do if how == "breaks" then break end end
  return "end"
end
for n = 1, 100 do
  for _, how in ipairs{"breaks", "returns", "error", "fails", "end"} do
    pcall(deep, n % 9, several, how, n % 12)
    local co = coroutine.wrap(function() coroutine.yield(); return several(how, n % 12) end)
    co()
    pcall(co)
    local left = coroutine.create(function()
      local x <close> = closes(n % 2 == 0 and fails or counts)
      local y <close> = closes(counts)
      deep(n % 20, coroutine.yield)
    end)
    coroutine.resume(left)
    deep(n % 6, coroutine.close, left)
  end
end

-- Finalizers run in the middle of any function that allocates, and may raise and allocate.
local function finalizer(kind)
  return function(object)
    finalized = finalized + 1
    if kind == 0 then deep(5, error, "in a finalizer") end
    if kind == 1 then deep(7, function() local t = {} for i = 1, 20 do t[i] = {} end end) end
    if kind == 2 then coroutine.wrap(function() coroutine.yield() end)() end
  end
end
warn("@off")
local function garbage(n)
  if n > 0 then
    setmetatable({}, {__gc = finalizer(n % 4)})
    return #tostring(n) + garbage(n - 1)
  end
  return 0
end
for _ = 1, 40 do garbage(100); collectgarbage("step") end
collectgarbage()
for i = 1, 300 do deep(i % 30, collectgarbage, "step") end

-- These run when the state is closed, one of them from a coroutine that is still suspended.
AT_END = setmetatable({}, {__gc = finalizer(1)})
SUSPENDED = coroutine.wrap(function() local x <close> = closes(counts); deep(10, coroutine.yield) end)
SUSPENDED()
print(closed, finalized >= 4000)
if arg[1] == "exit" then
  coroutine.wrap(function() local x <close> = closes(counts); deep(20, os.exit, true, true) end)()
end
