package readmodel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

func TestPresenceIsShown(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	w.AddSite(t, org, 1)
	addedAt := time.Now().UTC().Truncate(time.Microsecond)
	id, reason := hubID(1), "client closed"
	presence := domain.Presence{
		HubID: id, Since: addedAt.Add(-time.Hour), PublicIP: "192.0.2.1", Reason: &reason,
		Firmware: json.RawMessage(`{"version":"2.4.1"}`),
	}
	w.PutPresence(t, presence)
	projectionstest.Await(t, s, w.AppendAt(
		t, addedAt, streams.HubSubject(id), projectionstest.HubAdded(org, 1, 1),
	))
	// Added right after its presence was written, the hub is shown with its presence: the
	// directory's projection waits for the other one.
	hub, err := s.Hub(t.Context(), org, id)
	if err != nil || hub.Status != domain.HubUnknown || !hub.Since.Equal(addedAt) ||
		hub.PublicIP != nil || hub.DisconnectReason != nil ||
		string(hub.Firmware) != string(presence.Firmware) || hub.Network != nil {
		t.Errorf("hub with presence from before it was added: got %+v, %v, want unknown", hub, err)
	}
	presence.Online, presence.Since, presence.Reason = true, addedAt.Add(time.Second), nil
	presence.Network = json.RawMessage(`{"type":"wifi","ssid":"a\u0000b \ud800"}`)
	w.PutPresence(t, presence)
	streamstest.Eventually(t, "the hub is online", func() bool {
		hub, err = s.Hub(t.Context(), org, id)
		return err == nil && hub.Status == domain.HubOnline
	})
	if !hub.Since.Equal(presence.Since) || *hub.PublicIP != "192.0.2.1" ||
		hub.DisconnectReason != nil || string(hub.Network) != string(presence.Network) {
		t.Errorf("online hub: got %+v, want %+v", hub, presence)
	}
	page, err := s.Hubs(t.Context(), domain.Reach{OrgID: org}, nil, 50, "")
	if err != nil || len(page.Data) != 1 || page.Data[0].Status != domain.HubOnline ||
		page.Data[0].PublicIP != nil || page.Data[0].Firmware != nil || page.Data[0].Network != nil {
		t.Errorf("Hubs: got %+v, %v, want the status, and no fields of single reads", page.Data, err)
	}
	streamstest.Must(t, w.Buckets.Presence.Delete(t.Context(), string(id)))
	streamstest.Eventually(t, "the hub is unknown", func() bool {
		hub, err = s.Hub(t.Context(), org, id)
		return err == nil && hub.Status == domain.HubUnknown
	})
}

// A hub may send texts that the database cannot hold. None of them may stop the projection.
func TestNoHubStopsTheProjection(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	w.AddSite(t, org, 1)
	w.AddHub(t, org, 1, 1)
	deep := ""
	for range 5000 {
		deep = "[" + deep + "]"
	}
	reason := "a\x00b\xffc"
	for _, network := range []string{
		`"\u0000"`, `{"ssid":"\ud800"}`, "{\"ssid\":\"\xff\xfe\"}", deep, `1e999999`, `null`,
	} {
		value := fmt.Appendf(
			nil,
			`{"hub_id":%q,"online":false,"since":"2026-01-02T03:04:05.123456789Z","public_ip":%q,"reason":%q,"network":%s}`,
			hubID(1), "x\x00", reason, network,
		)
		w.PutPresenceValue(t, hubID(1), value)
	}
	w.PutPresence(t, domain.Presence{HubID: hubID(1), Online: true, Since: time.Now()})
	streamstest.Eventually(t, "the hub is online", func() bool {
		hub, err := s.Hub(t.Context(), org, hubID(1))
		return err == nil && hub.Status == domain.HubOnline && hub.Network == nil
	})
	streamstest.Eventually(t, "ready", func() bool { return s.Ready(t.Context()) == nil })
}

func TestWaitForEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, s := projectionstest.NewProjected(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.WaitFor(ctx, 1000); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
