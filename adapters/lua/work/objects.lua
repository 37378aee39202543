-- SPDX-License-Identifier: MIT
-- Objects: methods, metamethods, closures, errors that are caught, variables to close.
local Point = {}
Point.__index = Point
Point.__add = function(a, b) return setmetatable({x = a.x + b.x, y = a.y + b.y}, Point) end
Point.__close = function() end
function Point.new(x, y) return setmetatable({x = x, y = y}, Point) end
function Point:norm() return self.x * self.x + self.y * self.y end
local function checked(point)
  if point:norm() % 10 == 0 then error("a round number", 0) end
  return point
end
for _ = 1, arg[1] or 10 do
  local sum, caught = Point.new(0, 0), 0
  for i = 1, 100000 do
    local point <close> = Point.new(i % 13, i % 7)
    sum = sum + point
    if not pcall(checked, point) then caught = caught + 1 end
  end
  assert(caught > 0 and sum.x > 0)
end
