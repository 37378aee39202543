# SPDX-License-Identifier: MIT
# Coroutines, catch and throw, dictionaries, regular expressions.
set scale [lindex $argv 0]
set total 0
proc deep {n} { if {$n == 0} { yield bottom; error x }; return [expr {1 + [deep [expr {$n - 1}]]}] }
for {set i 0} {$i < $scale * 20} {incr i} {
	coroutine c deep [expr {$i % 50}]
	catch {c} message
	incr total [string length $message]
	set d [dict create]
	for {set j 0} {$j < 50} {incr j} { dict set d k$j [string repeat x $j] }
	dict for {k v} $d { incr total [string length $v] }
	incr total [string length [regsub -all {(a|b)+} [string repeat abc 50] <&>]]
	incr total [lindex [lsort -command {apply {{a b} {expr {$a - $b}}}} {5 3 9 1 7}] 2]
}
puts $total
