package ingest

import (
	"errors"
	"time"

	"golang.org/x/time/rate"
)

const (
	// helloEvery and helloBurst bound the hellos of one hub that are handled. Each writes the
	// presence bucket. A hub repeats its hello every five seconds until it has an ack.
	helloEvery = time.Second
	helloBurst = 30
	// limitedEvery is how often the same limited hub is logged.
	limitedEvery = 10 * time.Minute
)

// errResetLimited reports that the hub was reset more often than domain.HubLimit allows. The hub
// gets no ack, keeps its events, and says hello again.
var errResetLimited = errors.New("the hub is reset too often")

// allowHello reports whether a hello of the hub may be handled now.
func (s *hubState) allowHello() bool {
	if s.hellos == nil {
		s.hellos = rate.NewLimiter(rate.Every(helloEvery), helloBurst)
	}
	return s.hellos.AllowN(s.shard.cfg.Now(), 1)
}

// warnLimited logs that the hub is limited, at most once in limitedEvery.
func (s *hubState) warnLimited(reason string) {
	now := s.shard.cfg.Now()
	if !s.warned.IsZero() && now.Sub(s.warned) < limitedEvery {
		return
	}
	s.warned = now
	s.shard.cfg.Logger.Warn("hub limited", "hub_id", s.hub, "reason", reason)
}
