package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/cmd/hubcloud/internal/server"
	"hubcloud/domain"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/disk"
)

const (
	// demoFile is the file in the data directory that keeps the demo over restarts.
	demoFile = "dev.json"
	// ownerEmail is the address of the demo organization's owner.
	ownerEmail = "owner@example.com"
	// demoLinkTTL is how long the printed sign-in link is valid.
	demoLinkTTL = 12 * time.Hour
	// demoPatience is how long ready waits for the hubs. The key and the link are of use without them.
	demoPatience = 30 * time.Second
)

// demoHubs are the demo's virtual hubs with their names.
var demoHubs = []struct {
	id   domain.HubID
	name string
}{
	{"hub-demo-0000-0001", "Lobby"},
	{"hub-demo-0000-0002", "Second floor"},
	{"hub-demo-0000-0003", "Garage"},
}

// demo fills a running server with an organization, a site, an API key and three virtual hubs, and
// runs the hubs.
type demo struct {
	*server.Server
	dir installation.Dir
	// tlsCert is the file of the API's certificate, if the server has one.
	tlsCert string
	logger  *slog.Logger
}

// demoState is the content of dev.json. A later run continues with the same organization, key and
// hubs.
type demoState struct {
	OrgID  string `json:"org_id"`
	SiteID string `json:"site_id"`
	KeyID  string `json:"key_id"`
	// Key is an API key in the clear. dev.json is readable by its owner only, and a demo protects
	// no data.
	Key string `json:"key"`
}

// loadDemo reads dev.json. It returns an empty state when the file does not exist.
func loadDemo(dir installation.Dir) (demoState, error) {
	var state demoState
	text, err := os.ReadFile(dir.Path(demoFile))
	if errors.Is(err, fs.ErrNotExist) {
		return state, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		return demoState{}, fmt.Errorf("read %s: %w", demoFile, err)
	}
	return state, nil
}

// save writes dev.json, readable by its owner only.
func (s demoState) save(dir installation.Dir) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return disk.Write(dir.Path(demoFile), append(text, '\n'), 0o600)
}

// run creates the demo, or continues a former one, and runs its hubs until ctx ends. Once the hubs
// are online and added to the demo's site, or have not come online in 30 s, run calls ready with
// the demo's state and a link that signs in to the portal.
func (d demo) run(ctx context.Context, ready func(state demoState, link string)) error {
	state, err := d.create(ctx)
	if err != nil {
		return fmt.Errorf("create the demo: %w", err)
	}
	running, err := d.newHubs()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, h := range running {
		group.Go(func() error { return d.runHub(ctx, h.Hub) })
	}
	group.Go(func() error {
		err := virtualhub.Serve(ctx, running, string(d.dir))
		if err != nil { // the demo works without `hubcloud sim`
			d.logger.Warn("virtual hubs not controllable", "error", err)
		}
		return nil
	})
	added := make(chan struct{})
	group.Go(func() error {
		defer close(added)
		for _, h := range demoHubs {
			if err := d.addHub(ctx, state, h.id, h.name); err != nil {
				return err
			}
		}
		return nil
	})
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-added:
		case <-time.After(demoPatience):
			d.logger.Warn("virtual hubs not online yet", "enroll_url", d.Endpoints().PublicURL)
		}
		link, err := d.signInLink(ctx)
		if err != nil {
			return err
		}
		ready(state, link)
		return nil
	})
	return group.Wait()
}

// newHubs makes the demo's virtual hubs. If it returns an error, it has closed them.
func (d demo) newHubs() (running []virtualhub.Served, err error) {
	for _, h := range demoHubs {
		cfg := d.VirtualHub(h.id)
		cfg.BackoffMax = 2 * time.Second
		hub, err := virtualhub.New(cfg)
		if err != nil {
			err = fmt.Errorf("virtual hub %s: %w", h.id, err)
			for _, other := range running {
				err = errors.Join(err, other.Close())
			}
			return nil, err
		}
		running = append(running, virtualhub.Served{Hub: hub, Name: h.name})
	}
	return running, nil
}

// runHub runs a virtual hub until ctx ends.
func (d demo) runHub(ctx context.Context, hub *virtualhub.Hub) error {
	err := hub.Run(ctx)
	if closeErr := hub.Close(); closeErr != nil {
		d.logger.Warn("virtual hub not closed", "hub_id", hub.ID(), "error", closeErr)
	}
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = errors.New("returned before it was stopped")
	}
	return fmt.Errorf("virtual hub %s: %w", hub.ID(), err)
}

// create reads dev.json and makes whatever a former run has not made. It saves the state after each
// step, so that a run after a kill finds everything that exists.
func (d demo) create(ctx context.Context) (demoState, error) {
	state, err := loadDemo(d.dir)
	if err != nil {
		return state, err
	}
	origin := installation.OperatorOrigin()
	if state.OrgID == "" {
		state.OrgID, _, err = d.Directory().CreateOrg(ctx, origin, "Demo organization", ownerEmail)
		if err != nil {
			return state, err
		}
		if err := state.save(d.dir); err != nil {
			return state, err
		}
	}
	if state.SiteID == "" {
		site, err := d.Directory().CreateSite(ctx, origin, state.OrgID, "Demo building")
		if err != nil {
			return state, err
		}
		state.SiteID = site.ID
		if err := state.save(d.dir); err != nil {
			return state, err
		}
	}
	if state.Key == "" {
		state.KeyID, state.Key, err = d.Directory().CreateKey(
			ctx, origin, state.OrgID, "Demo", domain.AllScopes(), domain.KeyLimits{},
		)
		if err != nil {
			return state, err
		}
		if err := state.save(d.dir); err != nil {
			return state, err
		}
	}
	for _, h := range demoHubs {
		if err := d.registerHub(ctx, h.id); err != nil {
			return state, err
		}
	}
	return state, nil
}

// registerHub adds a demo hub to the inventory.
func (d demo) registerHub(ctx context.Context, hub domain.HubID) error {
	known, _, err := d.Directory().Hub(ctx, hub)
	if err != nil || known.Registered {
		return err
	}
	hash := domain.HashEnrolmentSecret(d.VirtualSecret(hub))
	return d.Directory().RegisterHub(ctx, installation.OperatorOrigin(), hub, hash)
}

// addHub waits until a hub is online and adds it to the demo's site.
func (d demo) addHub(
	ctx context.Context, state demoState, hub domain.HubID, name string,
) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for !d.Presence().Online(hub) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	known, _, err := d.Directory().Hub(ctx, hub)
	if err != nil || known.OrgID != "" {
		return err
	}
	_, err = d.Directory().AddHub(ctx, installation.OperatorOrigin(), domain.AddHub{
		OrgID: state.OrgID, HubID: hub, SiteID: state.SiteID, Name: &name,
	})
	return err
}

// signInLink returns a link that signs in the demo's owner once.
func (d demo) signInLink(ctx context.Context) (string, error) {
	now := time.Now()
	token, err := d.SignIn().NewLink(ctx, domain.SignInLink{
		Email: ownerEmail, AtOnce: true, CreatedAt: now, ExpiresAt: now.Add(demoLinkTTL),
	})
	return d.Endpoints().PublicURL + "/portal/sign-in/" + token, err
}
