package presence

import (
	"encoding/json"
	"strings"
	"time"

	"hubcloud/domain"
)

// What the broker's system account says, as far as it is read here.

// connectionEvent is `$SYS.ACCOUNT.<account>.CONNECT` and `….DISCONNECT`.
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

// observationOf reads an event about a hub's connection. False for connections that are no hub's.
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

// listQuery asks a server for its open connections (CONNZ), in the order of their ids.
type listQuery struct {
	Account string `json:"acc"`
	MQTT    string `json:"mqtt_client,omitempty"`
	CID     uint64 `json:"cid,omitempty"`
	Sort    string `json:"sort"`
	Offset  int    `json:"offset,omitempty"`
	Limit   int    `json:"limit"`
}

// listPage is what a server answers.
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

// pingList asks all servers, serverList one of them.
const pingList = "$SYS.REQ.SERVER.PING.CONNZ"

func serverList(id string) string { return "$SYS.REQ.SERVER." + id + ".CONNZ" }
