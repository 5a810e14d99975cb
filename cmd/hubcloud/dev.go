package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/virtualhub"
	"hubcloud/streams/directory"
	"hubcloud/streams/durablefile"
)

// devCommand runs the service with a demo on it.
type devCommand struct {
	serviceFlags
}

// demoOwner is the address of the demo organization's owner.
const demoOwner = "owner@example.com"

// demoHubs are the demo's virtual hubs, with what each is called.
var demoHubs = []struct {
	id   domain.HubID
	name string
}{
	{"hub-demo-0000-0001", "Lobby"},
	{"hub-demo-0000-0002", "Second floor"},
	{"hub-demo-0000-0003", "Garage"},
}

// Run serves until SIGINT or SIGTERM. The log of a demo begins at warnings, so that what it prints
// stays in sight.
func (c *devCommand) Run(ctx context.Context, out Streams) error {
	c.fetchPostgres = true
	return serve(ctx, &c.serviceFlags, c.logger(out), func(ctx context.Context, s *service) error {
		return runDemo(ctx, s, out)
	})
}

// demo is what the demo keeps in dev.json, so that a later run goes on with the same organization,
// key and hubs.
type demo struct {
	OrgID  string `json:"org_id"`
	SiteID string `json:"site_id"`
	KeyID  string `json:"key_id"`
	// Key is an API key in the clear: dev.json is readable by its owner alone, and a demo has
	// nothing to hide.
	Key     string                  `json:"key"`
	Secrets map[domain.HubID]string `json:"secrets"`
}

// runDemo makes the demo, or goes on with the one of a former run, runs its hubs until ctx ends,
// and prints how to try it once they are online.
func runDemo(ctx context.Context, s *service, out Streams) error {
	d, err := makeDemo(ctx, s)
	if err != nil {
		return fmt.Errorf("make the demo: %w", err)
	}
	hubs := newCrew(s.failed)
	defer hubs.stop()
	for _, h := range demoHubs {
		hub, err := virtualhub.New(virtualhub.Config{
			EnrollURL: s.bound.PublicURL, Serial: h.id.Serial(), Secret: d.Secrets[h.id],
			Dir:           s.dir.path("virtualhubs", string(h.id)),
			PairingWindow: s.flags.PairingWindow, Installer: 5 * time.Second,
			BackoffMax: 2 * time.Second,
			Log:        s.log.With("component", "virtualhub"),
		})
		if err != nil {
			return fmt.Errorf("virtual hub %s: %w", h.id, err)
		}
		defer closeHub(hub, s.log)
		hubs.run("virtual hub "+hub.ID(), hub.Run)
	}
	for _, h := range demoHubs {
		if err := adopt(ctx, s, d, h.id, h.name); err != nil {
			return err
		}
	}
	link, err := demoLink(ctx, s)
	if err != nil {
		return err
	}
	printDemo(out, s, d, link)
	<-ctx.Done()
	return ctx.Err()
}

func closeHub(hub *virtualhub.Hub, log *slog.Logger) {
	if err := hub.Close(); err != nil {
		log.Warn("virtual hub could not be closed", "hub_id", hub.ID(), "error", err)
	}
}

// makeDemo reads dev.json, and does what a run before has not come to. Each step is kept before the
// next, so that a kill in between leaves nothing behind that the next run does not find.
func makeDemo(ctx context.Context, s *service) (demo, error) {
	d := demo{Secrets: map[domain.HubID]string{}}
	text, err := os.ReadFile(s.dir.path("dev.json"))
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	keep := func() error {
		text, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return err
		}
		return durablefile.Write(s.dir.path("dev.json"), append(text, '\n'), 0o600)
	}
	origin := byOperator()
	if d.OrgID == "" {
		if d.OrgID, _, err = s.directory.CreateOrg(ctx, origin, "Demo organization", demoOwner); err != nil {
			return d, err
		}
		if err := keep(); err != nil {
			return d, err
		}
	}
	if d.SiteID == "" {
		site, err := s.directory.CreateSite(ctx, origin, d.OrgID, "Demo building")
		if err != nil {
			return d, err
		}
		d.SiteID = site.ID
		if err := keep(); err != nil {
			return d, err
		}
	}
	if d.Key == "" {
		if d.KeyID, d.Key, err = s.directory.CreateKey(ctx, origin, d.OrgID, "Demo", domain.AllScopes()); err != nil {
			return d, err
		}
		if err := keep(); err != nil {
			return d, err
		}
	}
	for _, h := range demoHubs {
		if err := registerDemoHub(ctx, s, &d, h.id, keep); err != nil {
			return d, err
		}
	}
	return d, nil
}

// registerDemoHub puts a demo hub into the inventory. Its secret is kept first: one that nobody
// knows could not be replaced.
func registerDemoHub(
	ctx context.Context, s *service, d *demo, hub domain.HubID, keep func() error,
) error {
	if d.Secrets[hub] == "" {
		secret, err := newEnrolmentSecret()
		if err != nil {
			return err
		}
		d.Secrets[hub] = secret
		if err := keep(); err != nil {
			return err
		}
	}
	state, _, err := s.directory.Hub(ctx, hub)
	if err != nil || state.Registered {
		return err
	}
	return s.directory.RegisterHub(ctx, byOperator(), hub, hashEnrolmentSecret(d.Secrets[hub]))
}

// adopt waits until a hub is online and adds it to the demo's site.
func adopt(ctx context.Context, s *service, d demo, hub domain.HubID, name string) error {
	waited := time.NewTicker(100 * time.Millisecond)
	defer waited.Stop()
	for !s.presence.Online(hub) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-waited.C:
		}
	}
	state, _, err := s.directory.Hub(ctx, hub)
	if err != nil || state.OrgID != "" {
		return err
	}
	_, err = s.directory.AddHub(ctx, byOperator(), directory.AddHub{
		OrgID: d.OrgID, HubID: hub, SiteID: d.SiteID, Name: &name, Ever: true, Connected: true,
	})
	return err
}

// demoLink makes a link that signs in the demo's owner at once, as long as it takes somebody to
// come back to the terminal.
func demoLink(ctx context.Context, s *service) (string, error) {
	now := time.Now()
	token, err := s.signIn.NewLink(ctx, domain.SignInLink{
		Email: demoOwner, AtOnce: true, CreatedAt: now, ExpiresAt: now.Add(12 * time.Hour),
	})
	return s.bound.PublicURL + "/portal/sign-in/" + token, err
}

// printDemo prints commands that work when they are pasted.
func printDemo(out Streams, s *service, d demo, link string) {
	api := s.bound.PublicURL + "/v1"
	hub := demoHubs[0].id
	fmt.Fprintf(out.Out, `
hubcloud is up, with three virtual hubs sending events.

  API        %[1]s
  reference  %[1]s/reference   (every call described, and to try with the key)
  key        %[2]s   (every scope; made for this demo)
  hubs       %[3]s, %[4]s, %[5]s
  metrics    http://%[6]s/metrics

Open the web portal, signed in as the demo's owner (the link works once; each start prints a new one):

  %[8]s

Follow a hub's events as they happen:

  curl -N -H 'Authorization: Bearer %[2]s' %[1]s/hubs/%[3]s/events/stream

List the hubs, and read the oldest events of one, page by page:

  curl -s -H 'Authorization: Bearer %[2]s' %[1]s/hubs
  curl -s -H 'Authorization: Bearer %[2]s' '%[1]s/hubs/%[3]s/events?limit=5'

See what hangs on the hub, and unlock its front door while you follow its events:

  curl -s -H 'Authorization: Bearer %[2]s' %[1]s/hubs/%[3]s/devices
  curl -s -H 'Authorization: Bearer %[2]s' -H 'Content-Type: application/json' -H 'Idempotency-Key: first' \
    -d '{"key":"lock","value":false}' %[1]s/hubs/%[3]s/devices/1/commands

Wait for the next event after a cursor (the next_cursor of a page):

  curl -s -H 'Authorization: Bearer %[2]s' '%[1]s/hubs/%[3]s/events?wait=30&after=CURSOR'

Ctrl-C stops it; everything is kept in %[7]s.

`, api, d.Key, hub, demoHubs[1].id, demoHubs[2].id, s.bound.Admin, s.dir, link)
}
