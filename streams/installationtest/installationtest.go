// Package installationtest opens an installation on a test's broker: the buckets, the directory
// with an organization and its hubs, and the hubs' event logs. Everything is real and ends with the
// test.
//
// The broker is either streamstest's, or one with MQTT from the package hubbridge/mqtttest. For
// what needs no installation there are the ports of a directory.Service: Presence, Mailbox,
// Connections.
package installationtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views/viewstest"
)

// Operator is the origin of what tests change in the directory.
var Operator = domain.Origin{Actor: domain.Actor{Kind: domain.ActorOperator, ID: "test"}}

// Config configures an installation. The zero value is ready to use.
type Config struct {
	// Retention is how long the hubs' logs keep events. Defaults to an hour.
	Retention time.Duration
	// Unserved leaves the journal without a writer: the test runs a bridge, which writes it.
	Unserved bool
	// Directory changes the configuration of the directory's service. By default every hub has
	// connected, and no connection is cut.
	Directory func(*directory.ServiceConfig)
}

// Installation is the streams of an installation.
type Installation struct {
	Conns     *streams.Conns
	Buckets   *streams.Buckets
	Log       *directory.Log
	Directory *directory.Service
	Journals  *journal.Journal
	HubLogs   *feed.Logs
	// OrgID and SiteID are the organization that has the hubs, and its site. Open leaves them
	// empty.
	OrgID, SiteID string

	close func()
}

// Open opens the installation on a broker that may already have one.
func Open(t testing.TB, conns *streams.Conns, cfg Config) *Installation {
	t.Helper()
	i := &Installation{Conns: conns}
	var err error
	if i.Buckets, err = streams.OpenBuckets(t.Context(), conns, 1); err != nil {
		t.Fatal(err)
	}
	if i.Log, err = directory.Open(t.Context(), conns, 1); err != nil {
		t.Fatal(err)
	}
	if cfg.Retention == 0 {
		cfg.Retention = time.Hour
	}
	open := viewstest.Open
	if cfg.Unserved {
		open = viewstest.Follow
	}
	var stopJournals func()
	i.Journals, stopJournals = open(t, conns, cfg.Retention)
	if i.HubLogs, err = feed.New(conns, feed.Config{
		Journal: i.Journals, Retention: cfg.Retention, Epoch: i.epoch, Logger: streamstest.Logger(),
	}); err != nil {
		t.Fatal(err)
	}
	i.close = sync.OnceFunc(func() {
		i.HubLogs.Close()
		stopJournals()
	})
	t.Cleanup(i.close)
	service := directory.ServiceConfig{
		Environment: domain.EnvironmentDev,
		Presence:    Presence{},
		Connections: &Connections{},
		Logs:        i.HubLogs,
	}
	if cfg.Directory != nil {
		cfg.Directory(&service)
	}
	i.Directory = directory.NewService(i.Log, service)
	return i
}

// Close closes the hubs' logs. It is for tests that close the connections before they end.
func (i *Installation) Close() { i.close() }

// CreateOrganization creates the organization and the site that AddHub adds hubs to.
func (i *Installation) CreateOrganization(t testing.TB) {
	t.Helper()
	var err error
	i.OrgID, _, err = i.Directory.CreateOrg(t.Context(), Operator, "Org", "owner@example.org")
	streamstest.Must(t, err)
	site, err := i.Directory.CreateSite(t.Context(), Operator, i.OrgID, "Site")
	streamstest.Must(t, err)
	i.SiteID = site.ID
}

// RegisterHub adds a hub to the inventory.
func (i *Installation) RegisterHub(t testing.TB, hub domain.HubID) {
	t.Helper()
	streamstest.Must(t, i.Directory.RegisterHub(t.Context(), Operator, hub, make([]byte, 32)))
}

// AddHub adds a hub of the inventory to the organization.
func (i *Installation) AddHub(t testing.TB, hub domain.HubID) {
	t.Helper()
	if _, err := i.Directory.AddHub(t.Context(), Operator, domain.AddHub{
		OrgID: i.OrgID, HubID: hub, SiteID: i.SiteID,
	}); err != nil {
		t.Fatal(err)
	}
}

// Hub returns the organization and the epoch of a hub, as the directory has them at the call. It
// makes Installation an ingest.Ownership that is never behind.
func (i *Installation) Hub(hub domain.HubID) (domain.HubAccess, bool) {
	state, _, err := i.Directory.Hub(context.Background(), hub)
	if err != nil || state.OrgID == "" {
		return domain.HubAccess{}, false
	}
	return domain.HubAccess{OrgID: state.OrgID, Epoch: state.Epoch}, true
}

func (i *Installation) epoch(hub domain.HubID) (domain.Epoch, bool) {
	access, ok := i.Hub(hub)
	return access.Epoch, ok
}

// EventLog returns the event log of a hub in short form, separated by spaces: the value of an
// observation, skip:FROM-TO of skipped events, disconnected:REASON, log_reset:REASON, and the type
// of any other event without "hub.". It fails the test if an envelope is malformed.
func (i *Installation) EventLog(t testing.TB, hub domain.HubID) string {
	t.Helper()
	var events []string
	for after := ""; ; {
		page, err := i.HubLogs.Page(t.Context(), hub, after, 500)
		streamstest.Must(t, err)
		for _, e := range page.Events {
			events = append(events, short(t, e.Envelope))
		}
		if after = page.Next; !page.HasMore {
			return strings.Join(events, " ")
		}
	}
}

// JournaledLog is EventLog with the events that have expired. The journal keeps them for longer.
func (i *Installation) JournaledLog(t testing.TB, hub domain.HubID) string {
	t.Helper()
	var events []string
	tip, _ := i.Journals.Tip(hub)
	for from := uint64(1); from <= tip.Seq; {
		records, err := i.Journals.Records(t.Context(), hub, from, tip.Seq, 1<<20)
		streamstest.Must(t, err)
		for _, r := range records {
			if r.Kind == journal.KindHubEvent || r.Kind == journal.KindCloudEvent {
				events = append(events, short(t, r.Payload))
			}
			from = r.Seq + 1
		}
	}
	return strings.Join(events, " ")
}

func short(t testing.TB, envelope []byte) string {
	t.Helper()
	var e struct {
		Type         string
		Time         string
		ClockTrusted *bool `json:"clock_trusted"`
		Data         struct {
			Value    json.Number
			From, To uint64
			Reason   *string
		}
	}
	if err := json.Unmarshal(envelope, &e); err != nil {
		t.Fatalf("%s: %v", envelope, err)
	}
	if _, err := time.Parse(domain.TimeLayout, e.Time); err != nil || e.ClockTrusted == nil {
		t.Errorf("%s: want a time in canonical form and clock_trusted: %v", envelope, err)
	}
	switch e.Type {
	case "channel.observed":
		return e.Data.Value.String()
	case domain.EventHubEventsSkipped:
		return fmt.Sprintf("skip:%d-%d", e.Data.From, e.Data.To)
	case domain.EventHubLogReset:
		if e.Data.Reason != nil {
			return "log_reset:" + *e.Data.Reason
		}
	case domain.EventHubDisconnected:
		if e.Data.Reason == nil {
			return "disconnected:null"
		}
		return "disconnected:" + strings.ReplaceAll(*e.Data.Reason, " ", "_")
	}
	return strings.TrimPrefix(e.Type, "hub.")
}
