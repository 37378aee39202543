/* SPDX-License-Identifier: MIT
 *
 * The deliberate bugs, compiled in one at a time by -DTOYVM_FAULT=n: the oracle
 * must find each (faults.sh). 0 is the VM as it should be.
 */
#ifndef TOYVM_FAULTS_H
#define TOYVM_FAULTS_H

#ifndef TOYVM_FAULT
#define TOYVM_FAULT 0
#endif

enum fault {
	FAULT_NONE,
};
#define FAULT(which) (TOYVM_FAULT == (which))

#endif
