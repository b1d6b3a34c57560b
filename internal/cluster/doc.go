// SPDX-License-Identifier: Apache-2.0

// Package cluster is for tests and measurements only. It runs several processes of the program
// as one service, breaks parts of it, and checks that no answer was wrong.
//
// A [Cluster] is PostgreSQL, with a synchronous standby if wanted, a bucket, processes of the
// program, and HAProxy in front of them. All have a loopback address of their own. A [Load]
// is a number of clients of each kind. Clients remember every answer, and compare the answers
// with the database, the bucket and the signatures afterwards. A [Fault] breaks something and
// mends it.
//
// Begin with [Scenarios], the table of faults with what must hold, and [Figures], the table of
// measurements. [Scenario.Run] and [Figure.Measure] run one. The command bench/cluster runs
// them all and prints tables. A scenario is added by a row in its table, a fault by a function
// in faults.go, a kind of client by a file such as sign.go.
//
// The package runs on Linux. It needs PostgreSQL, HAProxy and versitygw. It does not measure
// the algorithms (module bench) and tests no single package.
package cluster
