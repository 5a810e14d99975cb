package harness

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// patience only bounds how long a test that fails takes: a busy machine is no fault.
const patience = 5 * time.Minute

// Elapse sleeps for d. Use it only where the duration itself is tested, such as the length of an
// outage. Everything else waits for a signal or polls.
func Elapse(d time.Duration) { time.Sleep(d) }

// AnyMoment sleeps for a random time before a crash, so that crashes hit every moment of the work.
func AnyMoment(least, most time.Duration) { time.Sleep(least + rand.N(most-least)) }

// AwaitRetryAfter sleeps as long as the answer's Retry-After asks for.
func AwaitRetryAfter(header http.Header) error {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil {
		return fmt.Errorf(
			"Retry-After: got %q, want a number of seconds", header.Get("Retry-After"),
		)
	}
	time.Sleep(time.Duration(seconds) * time.Second) // the limit is one of real time
	return nil
}
