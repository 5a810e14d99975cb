package faults

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// histories are what hubs knew at instants at which the cloud had acknowledged everything that they
// had reported.
type histories struct {
	hubs  []*virtualhub.Hub
	known []instant
}

// instant is what a hub knew at a time: value and availability of its channels, by id.
type instant struct {
	hub      *virtualhub.Hub
	at       time.Time
	channels map[string]string
}

// note notes what the hubs know that have nothing left to report.
func (h *histories) note(t *testing.T) {
	t.Helper()
	for _, hub := range h.hubs {
		before, quiet := hub.Status(), false
		streamstest.Poll(20*time.Millisecond, func() bool {
			before = hub.Status()
			quiet = before.Connected && before.Acked == before.Newest && before.Oldest > before.Newest
			return quiet
		})
		channels, at := valuesOf(t, hub), time.Now().UTC()
		after := hub.Status()
		if quiet && after == before && fmt.Sprint(valuesOf(t, hub)) == fmt.Sprint(channels) {
			h.known = append(h.known, instant{hub, at, channels})
		}
	}
}

// valuesOf returns value and availability of a hub's channels, by the ids of their states.
func valuesOf(t *testing.T, hub *virtualhub.Hub) map[string]string {
	t.Helper()
	all := channelsOf(t, hub)
	for id, text := range all {
		value, rest, _ := strings.Cut(text, ", desired ")
		all[id] = value + rest[strings.LastIndex(rest, ", available "):]
	}
	return all
}

// check compares the states at some of the instants with what the hubs knew then. It returns how
// many channels were certain.
func (h *histories) check(t *testing.T, tenant *harness.Tenant) (certain int) {
	t.Helper()
	rand.Shuffle(len(h.known), func(i, j int) { h.known[i], h.known[j] = h.known[j], h.known[i] })
	for _, known := range h.known[:min(len(h.known), 30)] {
		certain += known.check(t, tenant)
	}
	return certain
}

// check compares the state at the instant. Where it is not certain it may be another one.
func (i instant) check(t *testing.T, tenant *harness.Tenant) (certain int) {
	t.Helper()
	at := i.at.Format("2006-01-02T15:04:05.000000Z")
	var past struct {
		Certain bool
		Data    []struct {
			Certain bool
			Device  struct{ ID int64 }
			Channel struct {
				Key       string
				Endpoint  int
				Value     json.RawMessage
				Available bool
			}
		}
	}
	tenant.Must(
		http.MethodGet, "/hubs/"+i.hub.ID()+"/state?at="+url.QueryEscape(at), nil, http.StatusOK,
	).JSON(t, &past)
	got := map[string]bool{}
	for _, item := range past.Data {
		c := item.Channel
		id := fmt.Sprintf("%s/%d/%d/%s", i.hub.ID(), item.Device.ID, c.Endpoint, c.Key)
		got[id] = true
		if !item.Certain {
			continue
		}
		certain++
		text := fmt.Sprintf("%s, available %t", c.Value, c.Available)
		if want, known := i.channels[id]; !known {
			t.Errorf("state at %s: %s is certain, want none: the hub did not have it", at, id)
		} else if text != want {
			t.Errorf("state at %s: %s is %s and certain, want %s", at, id, text, want)
		}
	}
	if !past.Certain {
		return certain
	}
	for id := range i.channels {
		if !got[id] {
			t.Errorf("state at %s: certain and without %s, which the hub had", at, id)
		}
	}
	return certain
}
