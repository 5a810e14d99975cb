package presence

import (
	"encoding/json"
	"strings"
	"time"

	"hubcloud/domain"
)

// connectionEvent has the fields read from the messages of the broker's system account on
// $SYS.ACCOUNT.<account>.CONNECT and $SYS.ACCOUNT.<account>.DISCONNECT.
type connectionEvent struct {
	Server struct {
		ID string `json:"id"`
	} `json:"server"`
	Client struct {
		Start time.Time `json:"start"`
		Host  string    `json:"host"`
		ID    uint64    `json:"id"`
		MQTT  string    `json:"client_id"`
	} `json:"client"`
	Reason string `json:"reason"`
}

// observationOf decodes an event about a connection; false when the connection is not a hub's.
func observationOf(payload []byte, ended bool) (domain.HubID, Observation, bool) {
	var e connectionEvent
	if json.Unmarshal(payload, &e) != nil || e.Server.ID == "" {
		return "", Observation{}, false
	}
	hub, ok := domain.ParseHubID(e.Client.MQTT)
	o := Observation{
		Connection: domain.Connection{Server: e.Server.ID, CID: e.Client.ID, Start: e.Client.Start},
		Ended:      ended,
	}
	if ended {
		if reason := strings.ToLower(e.Reason); reason != "" {
			o.Reason = &reason
		}
	} else {
		o.IP = e.Client.Host
	}
	return hub, o, ok
}

// listRequest asks a server for its open connections (CONNZ), in the order of their ids.
type listRequest struct {
	Account string `json:"acc"`
	MQTT    string `json:"mqtt_client,omitempty"`
	CID     uint64 `json:"cid,omitempty"`
	Sort    string `json:"sort"`
	Offset  int    `json:"offset,omitempty"`
	Limit   int    `json:"limit"`
}

// listPage is a server's answer to a listRequest.
type listPage struct {
	Server struct {
		ID string `json:"id"`
	} `json:"server"`
	Data *struct {
		Total       int `json:"total"`
		Offset      int `json:"offset"`
		Connections []struct {
			CID   uint64    `json:"cid"`
			Start time.Time `json:"start"`
			IP    string    `json:"ip"`
			MQTT  string    `json:"mqtt_client"`
		} `json:"connections"`
	} `json:"data"`
}

// pingList is the subject of a listRequest to all servers.
const pingList = "$SYS.REQ.SERVER.PING.CONNZ"

// serverList returns the subject of a listRequest to the server id.
func serverList(id string) string { return "$SYS.REQ.SERVER." + id + ".CONNZ" }
