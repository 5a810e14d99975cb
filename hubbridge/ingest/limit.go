package ingest

import (
	"errors"
	"time"
)

// limitedEvery is how often the same limited hub is logged.
const limitedEvery = 10 * time.Minute

// errResetLimited reports that the hub was reset more often than domain.HubLimit allows. The hub
// gets no ack, keeps its events, and says hello again.
var errResetLimited = errors.New("the hub is reset too often")

// warnLimited logs that the hub is limited, at most once in limitedEvery.
func (s *hubState) warnLimited(reason string) {
	now := s.shard.cfg.Now()
	if !s.warned.IsZero() && now.Sub(s.warned) < limitedEvery {
		return
	}
	s.warned = now
	s.shard.cfg.Logger.Warn("hub limited", "hub_id", s.hub, "reason", reason)
}
