// Package faults tries the built binary under fire: hubs that resend, lie, flood and vanish, and a service that is killed in the
// midst of it. Every event is to be stored exactly once and in order, and no consumer may miss one without being told.
package faults
