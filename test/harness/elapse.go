package harness

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Elapse lets time pass. It is for tests whose subject is the time itself, such as the length of an
// outage or of a measurement; everything else waits for a signal or polls.
func Elapse(d time.Duration) { time.Sleep(d) }

// AnyMoment lets a random time pass before a crash, so that crashes come at every moment of the
// work that they interrupt.
func AnyMoment(least, most time.Duration) { time.Sleep(least + rand.N(most-least)) }

// AwaitRetryAfter waits for as long as an answer asks for with Retry-After.
func AwaitRetryAfter(header http.Header) error {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil {
		return fmt.Errorf(
			"Retry-After: got %q, want a number of seconds", header.Get("Retry-After"),
		)
	}
	time.Sleep(time.Duration(seconds) * time.Second) // what clients are asked to do
	return nil
}
