package domain_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"hubcloud/domain"
)

// Regression: a hub could begin logs and have certificates issued without a limit, at 525 facts a
// second that are stored forever.
func TestHubLimit(t *testing.T) {
	t.Parallel()
	limit := domain.HubLimit{PerMinute: 4, Burst: 20}
	type attempt func(s domain.HubState, at time.Time, n int) ([]domain.Event, error)
	for name, ask := range map[string]attempt{
		"logs": func(s domain.HubState, at time.Time, n int) ([]domain.Event, error) {
			return domain.DecideBeginEpoch(
				s, domain.Origin{At: at, Actor: origin.Actor},
				domain.BeginEpoch{OwnLog: fmt.Sprint("log-", n)}, domain.NewEpochID(uint32(n+1000)),
				limit,
			)
		},
		"certificates": func(s domain.HubState, at time.Time, n int) ([]domain.Event, error) {
			issue := domain.IssueCertificate{
				Fingerprint: fmt.Sprintf("%064x", n+1), ExpiresAt: expires, SecretHash: hash(1),
			}
			return domain.DecideIssueCertificate(s, domain.Origin{
				At: at, Actor: origin.Actor,
			}, issue, limit)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, now, granted := fold(t, domain.EvolveHub, registered, added), origin.At, 0
			// One attempt a second for two hours.
			const seconds = 2 * 3600
			for second := range seconds {
				at := now.Add(time.Duration(second) * time.Second)
				events, err := ask(state, at, second)
				if err != nil {
					var limited *domain.Error
					if !errors.As(err, &limited) || limited.Code != domain.CodeRateLimited || limited.RetryAfter <= 0 ||
						limited.RetryAfter > 15*time.Second {
						t.Fatalf(
							"after %d granted: got %v, retry after %v", granted, err,
							limited.RetryAfter,
						)
					}
					continue
				}
				granted++
				for _, e := range events {
					if state, err = domain.EvolveHub(state, e); err != nil {
						t.Fatal(err)
					}
				}
				if granted == limit.Burst && second > limit.Burst {
					t.Errorf("got the burst of %d in %d seconds", limit.Burst, second)
				}
			}
			if want := limit.Burst + seconds*limit.PerMinute/60; granted < want-limit.Burst || granted > want+1 {
				t.Errorf("got %d granted within two hours, want about %d", granted, want)
			}
			// A day later the whole burst is available again.
			at, burst := now.Add(32*time.Hour), 0
			for ; burst < 2*limit.Burst; burst++ {
				events, err := ask(state, at, 1<<20+burst)
				if err != nil {
					break
				}
				if state, err = domain.EvolveHub(state, events[0]); err != nil {
					t.Fatal(err)
				}
			}
			if burst != limit.Burst {
				t.Errorf("got %d granted at once a day later, want %d", burst, limit.Burst)
			}
		})
	}
}
