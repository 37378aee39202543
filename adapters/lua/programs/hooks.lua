-- SPDX-License-Identifier: MIT
-- Hooks: functions of Lua that run at calls, returns, lines and instructions of others.
local seen = 0
local function deep(n, f, ...) if n == 0 then return f(...) end return (deep(n - 1, f, ...)) end
local function work(n)
  local t = {}
  for i = 1, n do t[i] = tostring(i); if i % 7 == 0 then t[i] = deep(i % 5, tostring, i) end end
  local function inner(...) return select("#", ...) end
  return inner(table.unpack(t)) + #table.concat(t)
end
local function hook() deep(seen % 4, function() seen = seen + 1 end) end
local function failing() seen = seen + 1; if seen % 50 == 0 then deep(3, error, "in a hook") end end
local events = {"c", "r", "l", "cr", "crl", ""}

for round = 1, 6 do
  for i, mask in ipairs(events) do
    debug.sethook(hook, mask, mask == "" and 3 or 0)
    work(30)
    deep(10, pcall, deep, 5, error, "x")
    debug.sethook(failing, mask, mask == "" and 7 or 0)
    for _ = 1, 5 do pcall(deep, i, work, 20) end
    debug.sethook()
    local co = coroutine.create(function() for _ = 1, 3 do work(10); coroutine.yield() end end)
    debug.sethook(co, hook, mask, mask == "" and 2 or 0)
    for _ = 1, 5 do coroutine.resume(co) end
  end
end

-- A hook that changes the hook, one that closes, and one that looks at all frames.
debug.sethook(function() debug.sethook(hook, "l") end, "c")
work(10)
debug.sethook(function() local x <close> = setmetatable({}, {__close = hook}) end, "r")
work(10)
debug.sethook(function()
  for level = 1, 200 do
    local info = debug.getinfo(level, "nSlutfr")
    if not info then break end
    debug.getlocal(level, 1)
  end
end, "", 11)
deep(50, work, 20)
debug.sethook()
print(seen > 1000)
