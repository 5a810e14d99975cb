package ingest

import (
	"errors"
	"time"

	"golang.org/x/time/rate"
)

const (
	// helloEvery and helloBurst bound the hellos of one hub that are dealt with. Each writes the
	// presence bucket. A hub repeats its hello every five seconds until it has an ack.
	helloEvery = time.Second
	helloBurst = 30
	// limitedEvery is how often the log has a line about the same hub that is limited.
	limitedEvery = 10 * time.Minute
)

// errTooOften says that the hub was reset more often than domain.HubLimit allows. It gets no ack,
// keeps its events, and says hello again.
var errTooOften = errors.New("the hub is reset too often")

// mayGreet reports whether a hello of the hub is dealt with now.
func (s *session) mayGreet() bool {
	if s.hellos == nil {
		s.hellos = rate.NewLimiter(rate.Every(helloEvery), helloBurst)
	}
	return s.hellos.AllowN(s.shard.cfg.Now(), 1)
}

// warnLimited logs that the hub is limited, and why.
func (s *session) warnLimited(why string) {
	now := s.shard.cfg.Now()
	if !s.warned.IsZero() && now.Sub(s.warned) < limitedEvery {
		return
	}
	s.warned = now
	s.shard.cfg.Log.Warn("hub limited: it gets no ack for now", "hub_id", s.hub, "reason", why)
}
