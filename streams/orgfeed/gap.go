package orgfeed

import (
	"encoding/json"
	"time"

	"hubcloud/domain"
)

// gapData is the data of feed.gap.
type gapData struct {
	HubID  domain.HubID `json:"hub_id"`
	Reason string       `json:"reason"`
}

// gapPayload returns the event feed.gap without its cursor.
func gapPayload(g gap, at time.Time) []byte {
	data, err := json.Marshal(gapData{g.hub, g.reason})
	if err != nil {
		panic(err) // two texts
	}
	payload, err := json.Marshal(domain.HubEvent{
		Type: domain.EventFeedGap, HubID: g.hub, Time: domain.FormatTime(at), Data: data,
	})
	if err != nil {
		panic(err)
	}
	return payload
}
