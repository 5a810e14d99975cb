package orgfeed

import (
	"encoding/json"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/feed"
)

// gapData is the data of feed.gap.
type gapData struct {
	HubID  domain.HubID `json:"hub_id"`
	Reason string       `json:"reason"`
}

// gapEvent returns the event feed.gap of a hub, whose log has an epoch. It has the same cursor and
// time wherever it is read.
func gapEvent(hub domain.HubID, epoch domain.Epoch, g gap) (domain.EncodedEvent, error) {
	at := time.Unix(0, g.at).UTC()
	data, err := json.Marshal(gapData{hub, g.reason})
	if err != nil {
		panic(err) // two texts
	}
	payload, err := json.Marshal(domain.HubEvent{
		Type: domain.EventFeedGap, HubID: hub, Time: domain.FormatTime(at), Data: data,
	})
	if err != nil {
		panic(err)
	}
	return feed.Marker(epoch, at, payload)
}
