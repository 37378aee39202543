<?php
// SPDX-License-Identifier: MIT
// Fibers, generators, exceptions, regular expressions with callbacks, sorting.
function deep($n) { if ($n == 0) { Fiber::suspend(str_repeat("x", 20)); throw new Exception("bottom"); } return 1 + deep($n - 1); }
function steps($n) { for ($i = 0; $i < $n; $i++) { yield $i => str_repeat("y", $i); } }
$total = 0;
for ($round = 0; $round < (int)$argv[1] * 10; $round++) {
	$fibers = [];
	for ($i = 0; $i < 10; $i++) { $fibers[] = new Fiber(fn() => deep($i * 5)); }
	foreach ($fibers as $fiber) { $total += strlen($fiber->start()); }
	foreach ($fibers as $fiber) { try { $fiber->resume(); } catch (Exception $e) { $total += strlen($e->getMessage()); } }
	foreach (steps(30) as $key => $value) { $total += strlen($value) + $key; }
	$total += strlen(preg_replace_callback('/(a|b)+/', fn($m) => strtoupper($m[0]), str_repeat("abc", 100)));
	$numbers = range(1, 200);
	usort($numbers, fn($a, $b) => ($a * 7 % 31) <=> ($b * 7 % 31));
	$total += $numbers[5] + strlen(json_encode(json_decode(json_encode($numbers))));
}
echo $total, "\n";
