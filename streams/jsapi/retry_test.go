package jsapi_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

var errPermanent = errors.New("cannot succeed")

// Do repeats after errors that mean that no leader has answered, and after no other error.
func TestRetry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		err   error
		retry bool
	}{
		{"no responders", nats.ErrNoResponders, true},
		{"no leader", fmt.Errorf("get: %w", jsapi.ErrNoLeader), true},
		{"no answer to a publish", jetstream.ErrNoStreamResponse, true},
		{"unavailable by nats.go", &jetstream.APIError{Code: 503, ErrorCode: 10008}, true},
		{"stream missing", jsapi.ErrNoStream, false},
		{"not found", jsapi.ErrNotFound, false},
		{"conflict", jsapi.ErrConflict, false},
		{"outcome unknown", jsapi.ErrOutcomeUnknown, false},
		{"connection closed", nats.ErrConnectionClosed, false},
		{"anything else", errPermanent, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			err := jsapi.Retry{}.Do(t.Context(), func(context.Context) error {
				if tries++; tries < 3 {
					return c.err
				}
				return nil
			})
			if c.retry && (err != nil || tries != 3) {
				t.Errorf("%s: %v after %d tries; want nil after 3", c.name, err, tries)
			}
			if !c.retry && (!errors.Is(err, c.err) || tries != 1) {
				t.Errorf("%s: %v after %d tries; want the error after 1", c.name, err, tries)
			}
		})
	}
}

// A request to a leader that was gone waited until its context ended: a service that started while
// a cluster elected a leader hung for minutes.
func TestRetryBoundsEachTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, tries := time.Now(), 0
		err := jsapi.Retry{}.Do(t.Context(), func(ctx context.Context) error {
			if tries++; tries == 3 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(began); err != nil || tries != 3 || took != 3*time.Second {
			t.Errorf("%v after %d tries and %v; want nil after 3 tries and 3s", err, tries, took)
		}
		began = time.Now()
		err = jsapi.Retry{}.Do(
			t.Context(), func(context.Context) error { return jsapi.ErrNoLeader },
		)
		if took := time.Since(began); !errors.Is(err, jsapi.ErrNoLeader) || took != jsapi.Patience {
			t.Errorf(
				"without a leader: %v after %v; want ErrNoLeader after %v", err, took,
				jsapi.Patience,
			)
		}
	})
}

func TestSetUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := jsapi.SetUp(t.Context(), func(context.Context) error { return nats.ErrNoResponders })
		if took := time.Since(began); !errors.Is(err, nats.ErrNoResponders) || took != time.Minute {
			t.Errorf("without a broker: %v after %v; want ErrNoResponders after 1m", err, took)
		}
	})
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	unavailable := func(err error) bool {
		return domain.CodeOf(err) == domain.CodeServiceUnavailable
	}
	for _, err := range []error{
		jsapi.ErrNoLeader, jsapi.ErrNoStream, jsapi.ErrOutcomeUnknown, jsapi.ErrUnconfirmed,
		jsapi.ErrTornBatch, context.DeadlineExceeded, nats.ErrTimeout, nats.ErrConnectionClosed,
	} {
		got := jsapi.Unavailable(fmt.Errorf("read: %w", err), "try again")
		if !unavailable(got) || !errors.Is(got, err) {
			t.Errorf("Unavailable(%v) = %v; want service_unavailable with its cause", err, got)
		}
	}
	for _, err := range []error{
		nil, errPermanent, jsapi.ErrConflict, jsapi.ErrNotFound, context.Canceled,
		domain.Errorf(domain.CodeNotFound, "no such hub"),
	} {
		if got := jsapi.Unavailable(err, "try again"); got != err {
			t.Errorf("Unavailable(%v) = %v; want the error itself", err, got)
		}
	}
}
