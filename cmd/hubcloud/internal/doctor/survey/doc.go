// Package survey asks the broker how it is: its servers over the system account, its accounts and
// streams over JetStream's own API. It reads, and changes nothing. It is for operators' questions,
// not for the service's way of working: an answer is as of the moment it was given, and servers and
// streams that did not answer in time are simply not in it.
//
// Streams are described by whichever server the cluster's own leader has asked, also by followers:
// an answer can be stale by some seconds, or by the length of a partition where it comes from the
// cut off side. Operators then see numbers and leaders of before, and look again; nothing in the
// service is decided by them. What the service decides by, it asks with streams.AskState and
// streams.AskLast.
package survey
