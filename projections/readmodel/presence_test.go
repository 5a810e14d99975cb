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
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

func TestPresenceIsShown(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	w.Project(t, s)
	w.AddSite(t, org, 1)
	addedAt := time.Now().UTC().Truncate(time.Microsecond)
	before := addedAt.Add(-time.Hour)
	reason := "client closed"
	firmware, network := `{"version":"2.4.1"}`, `{"type":"wifi","ssid":"a\u0000b \ud800"}`
	w.PutPresence(
		t,
		domain.Presence{
			HubID:    projectionstest.HubID(1),
			Since:    before,
			PublicIP: "192.0.2.1",
			Reason:   &reason,
			Firmware: json.RawMessage(firmware),
		},
	)
	w.AppendAt(
		t, addedAt, streams.HubSubject(projectionstest.HubID(1)),
		projectionstest.HubAdded(org, 1, 1),
	)
	projectionstest.Await(
		t,
		s,
		w.AppendAt(
			t, addedAt, streams.HubSubject(projectionstest.HubID(2)),
			projectionstest.HubAdded(org, 2, 1),
		),
	)

	// Added right after its presence was written, the hub is shown with its presence: the
	// directory's projection waits for the other one.
	hub, err := s.Hub(t.Context(), org, projectionstest.HubID(1))
	if err != nil {
		t.Fatal(err)
	}
	if hub.Status != domain.HubUnknown || !hub.Since.Equal(addedAt) || hub.PublicIP != nil ||
		hub.DisconnectReason != nil {
		t.Errorf("hub with presence from before it was added: got %+v, want unknown", hub)
	}
	if string(hub.Firmware) != firmware || hub.Network != nil {
		t.Errorf("got firmware %s and network %s", hub.Firmware, hub.Network)
	}
	if hub, err := s.Hub(t.Context(), org, projectionstest.HubID(2)); err != nil ||
		hub.Status != domain.HubUnknown ||
		hub.Firmware != nil {
		t.Errorf("hub without presence: got %+v, %v, want unknown", hub, err)
	}

	status := func(want domain.HubStatus) domain.Hub {
		t.Helper()
		var hub domain.Hub
		streamstest.Eventually(t, "the hub is "+string(want), func() bool {
			var err error
			hub, err = s.Hub(t.Context(), org, projectionstest.HubID(1))
			return err == nil && hub.Status == want
		})
		page, err := s.Hubs(t.Context(), domain.Reach{OrgID: org}, nil, 50, "")
		if err != nil || len(page.Data) != 2 || page.Data[0].Status != want ||
			!page.Data[0].Since.Equal(hub.Since) {
			t.Errorf("Hubs: got %+v, %v, want the same status", page.Data, err)
		}
		if page.Data[0].PublicIP != nil || page.Data[0].Firmware != nil ||
			page.Data[0].Network != nil {
			t.Errorf("Hubs shows fields of single reads: %+v", page.Data[0])
		}
		return hub
	}
	online := addedAt.Add(time.Second)
	w.PutPresence(
		t,
		domain.Presence{
			HubID:    projectionstest.HubID(1),
			Online:   true,
			Since:    online,
			PublicIP: "192.0.2.2",
			Network:  json.RawMessage(network),
		},
	)
	if hub := status(domain.HubOnline); !hub.Since.Equal(online) || *hub.PublicIP != "192.0.2.2" ||
		hub.DisconnectReason != nil ||
		string(hub.Network) != network ||
		hub.Firmware != nil {
		t.Errorf("online hub: got %+v", hub)
	}
	w.PutPresence(
		t,
		domain.Presence{
			HubID:    projectionstest.HubID(1),
			Since:    online.Add(time.Second),
			PublicIP: "192.0.2.2",
			Reason:   &reason,
		},
	)
	if hub := status(domain.HubOffline); !hub.Since.Equal(online.Add(time.Second)) ||
		*hub.DisconnectReason != reason {
		t.Errorf("offline hub: got %+v", hub)
	}
	if err := w.Buckets.Presence.Delete(t.Context(), string(projectionstest.HubID(1))); err != nil {
		t.Fatal(err)
	}
	status(domain.HubUnknown)
}

// A hub may send texts that the database cannot hold. None of them may stop the projection.
func TestNoHubStopsTheProjection(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	w.Project(t, s)
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
			projectionstest.HubID(1), "x\x00", reason, network,
		)
		w.PutPresenceValue(t, projectionstest.HubID(1), value)
	}
	w.PutPresence(
		t, domain.Presence{HubID: projectionstest.HubID(1), Online: true, Since: time.Now()},
	)
	streamstest.Eventually(t, "the hub is online", func() bool {
		hub, err := s.Hub(t.Context(), org, projectionstest.HubID(1))
		return err == nil && hub.Status == domain.HubOnline && hub.Network == nil
	})
	streamstest.Eventually(t, "ready", func() bool { return s.Ready(t.Context()) == nil })
}

func TestReadsFollowWrites(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	projecting, reading := w.OpenStore(t), w.OpenStore(t)
	w.Project(t, projecting)
	// The other store is notified of what this one commits.
	service := directory.NewService(
		w.Directory,
		directory.ServiceConfig{
			Environment:     domain.EnvironmentDev,
			AwaitReadModels: reading.WaitFor,
		},
	)
	origin := domain.Origin{Actor: projectionstest.Operator}
	orgID, _, err := service.CreateOrg(t.Context(), origin, "Org", "a@example.org")
	if err != nil {
		t.Fatal(err)
	}
	const calls = 50
	begun := time.Now()
	for n := range calls {
		site, err := service.CreateSite(t.Context(), origin, orgID, fmt.Sprint("Site ", n))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := reading.Site(t.Context(), orgID, site.ID); err != nil ||
			got.Name != site.Name {
			t.Fatalf("Site %d after CreateSite: got %+v, %v", n, got, err)
		}
	}
	t.Logf("%s a call, with a read", time.Since(begun)/calls)
}

func TestWaitForEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	w.Project(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.WaitFor(ctx, 1000); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
