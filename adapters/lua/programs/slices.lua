-- SPDX-License-Identifier: MIT
-- A slice of work for the host of many threads (threads.c): calls, errors, coroutines that outlive the slice.
local kept, count = {}, 0
local function deep(n, f, ...) if n == 0 then return f(...) end return (deep(n - 1, f, ...)) end
local function generator(n)
  return coroutine.wrap(function()
    for i = 1, n do deep(i % 7, coroutine.yield, i) end
    deep(n % 11, error, "at the end")
  end)
end

local function slice()
  count = count + 1
  for i = 1, 20 do
    kept[i] = kept[i] or generator(i)
    if not deep(count % 9, pcall, kept[i]) then kept[i] = nil end
  end
  local t = {}
  for i = 1, 100 do t[i] = deep(i % 5, tostring, i * count) end
  table.sort(t, function(a, b) return deep(1, rawlen, a) < #b end)
  pcall(deep, count % 50, error, "x")
  local closed <close> = setmetatable({}, {__close = function() deep(3, type, 1) end})
  -- What runs on a stack of which Lua does not know who runs it.
  local function elsewhere(fails)
    deep(count % 7, pcall, error)
    local co = coroutine.wrap(function() deep(3, coroutine.yield); deep(2, type, 1) end)
    co()
    coroutine.close(coroutine.create(elsewhere))
    if fails then deep(4, error, "elsewhere") end
  end
  deep(count % 5, call_elsewhere, elsewhere)
  deep(count % 3, coroutine.wrap(call_elsewhere), elsewhere)
  if not IN_COROUTINE then
    -- The error leaves two coroutines behind.
    local inner = coroutine.wrap(function() deep(count % 11, call_elsewhere, elsewhere, true) end)
    deep(count % 6, pcall, coroutine.wrap(function() deep(5, inner) end))
  end
  string.gsub("some words", "%a", function(c) return deep(2, string.upper, c) end)
end

-- In a coroutine, a slice ends with a yield from a stack of changing depth.
return function()
  if IN_COROUTINE then
    while true do slice(); deep(count % 30, coroutine.yield) end
  end
  slice()
end
