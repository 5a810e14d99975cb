package streamstest

import (
	"time"
	"unsafe"
)

// BeforeSuspend returns the time of a moment ago as time.Now returned it before the machine was
// suspended for d: the wall clock has gone on, the monotonic clock has not.
func BeforeSuspend(d time.Duration) time.Time {
	t := time.Now()
	// The first word of a time with a monotonic clock reading has the seconds since 1885 from bit
	// 30 on. There is no other way to make the clocks differ.
	*(*uint64)(unsafe.Pointer(&t)) -= uint64(d/time.Second) << 30
	return t
}
