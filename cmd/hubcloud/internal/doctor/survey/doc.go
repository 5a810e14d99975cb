// Package survey reads the state of the broker: its servers over the system account, its accounts
// and streams over the JetStream API. It changes nothing.
//
// It is for operators, not for decisions of the service: results lack servers and streams that did
// not answer in time, and may be some seconds old. On the minority side of a network partition they
// have the age of the partition.
package survey
