# SPDX-License-Identifier: MIT
# Hashes, sorting, closures, die and eval, regular expressions, string eval.
use strict;
use warnings;

my ($scale, $sum, %hash) = (shift, 0);
for my $i (1 .. 1000 * $scale) { $hash{"k$i"} = [$i, "v$i"]; }
for (sort keys %hash) {
	$sum += length join(",", @{$hash{$_}});
	eval { die {} } if /9$/;
}
sub deep { my $n = shift; return $n ? 1 + deep($n - 1) : die "bottom\n"; }
for my $i (1 .. 10 * $scale) {
	eval { deep($i % 60) };
	$sum += length $@;
	$sum += eval "my \$x = $i; sub { \$x * 2 }->()";
	(my $text = "ab" x 100) =~ s/((a)|b)/uc $1/ge;
	$sum += length $text;
	local $SIG{__WARN__} = sub { $sum++ };
	warn "x";
}
print "$sum\n";
