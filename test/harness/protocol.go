package harness

import (
	"sync"
	"testing"

	"hubcloud/test/protocol"
)

// CheckedMessages returns a function that validates each message between a hub and the cloud
// against the hub protocol, and fails the test at one that violates it. Unchecked takes its place
// for a hub that breaks the protocol on purpose.
func CheckedMessages(t testing.TB) func(topic string, payload []byte) {
	t.Helper()
	checker, err := protocol.NewChecker()
	Must(t, err)
	var mu sync.Mutex
	ended := false // t must not be used any more
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
	})
	return func(topic string, payload []byte) {
		err := checker.Check(topic, payload)
		mu.Lock()
		defer mu.Unlock()
		if err != nil && !ended {
			t.Error(err)
		}
	}
}

// Unchecked accepts every message.
func Unchecked(string, []byte) {}
