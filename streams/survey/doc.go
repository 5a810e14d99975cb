// Package survey asks the broker how it is: its servers over the system account, its accounts and streams over JetStream's own API. It reads,
// and changes nothing. It is for operators' questions, not for the service's way of working: an answer is as of the moment it was given, and
// servers and streams that did not answer in time are simply not in it.
package survey
