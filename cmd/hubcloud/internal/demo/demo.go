// Package demo fills a running server with a demo: an organization with a site, an API key and
// three virtual hubs. dev.json in the data directory keeps the demo over restarts.
package demo

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/cmd/hubcloud/internal/build"
	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/cmd/hubcloud/internal/operator"
	"hubcloud/domain"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams/directory"
	"hubcloud/streams/durablefile"
	"hubcloud/streams/signin"
)

const (
	fileName = "dev.json"
	// ownerEmail is the address of the demo organization's owner.
	ownerEmail = "owner@example.com"
	// linkTTL is how long the printed sign-in link is valid.
	linkTTL = 12 * time.Hour
	// enrolmentTimeout is how long an enrolment of a hub may take.
	enrolmentTimeout = 30 * time.Second
	// patience is how long ready waits for the hubs. The key and the link are of use without them.
	patience = 30 * time.Second
)

// hubs are the demo's virtual hubs with their names.
var hubs = []struct {
	id   domain.HubID
	name string
}{
	{"hub-demo-0000-0001", "Lobby"},
	{"hub-demo-0000-0002", "Second floor"},
	{"hub-demo-0000-0003", "Garage"},
}

// Config is what a demo needs of the server that it runs on. All fields but TLSCert are required.
type Config struct {
	// Dir is the server's data directory. The demo keeps dev.json and its hubs there.
	Dir installation.Dir
	// Endpoints are the server's addresses.
	Endpoints installation.Endpoints
	// Directory creates the organization, the site, the key and the hubs.
	Directory *directory.Service
	// Presence shows when the hubs are online.
	Presence *presence.View
	// SignIn creates the link to the portal.
	SignIn *signin.Store
	// TLSCert is the file of the API's certificate, if the server has one. The hubs trust what is in
	// it besides the system's authorities, so that a certificate may sign itself.
	TLSCert string
	Logger  *slog.Logger
}

// State is the content of dev.json. A later run continues with the same organization, key and
// hubs.
type State struct {
	OrgID  string `json:"org_id"`
	SiteID string `json:"site_id"`
	KeyID  string `json:"key_id"`
	// Key is an API key in the clear. dev.json is readable by its owner only, and a demo protects
	// no data.
	Key     string                  `json:"key"`
	Secrets map[domain.HubID]string `json:"secrets"`
}

// Load reads dev.json. It returns an empty state when the file does not exist.
func Load(dir installation.Dir) (State, error) {
	state := State{Secrets: map[domain.HubID]string{}}
	text, err := os.ReadFile(dir.Path(fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return state, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		return State{}, fmt.Errorf("read %s: %w", fileName, err)
	}
	return state, nil
}

// save writes dev.json, readable by its owner only.
func (s State) save(dir installation.Dir) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return durablefile.Write(dir.Path(fileName), append(text, '\n'), 0o600)
}

// Run creates the demo, or continues a former one, and runs its hubs until ctx ends. Once the hubs
// are online and added to the demo's site, or have not come online in 30 s, Run calls ready with the
// demo's state and a link that signs in to the portal.
func Run(ctx context.Context, cfg Config, ready func(state State, link string)) error {
	state, err := create(ctx, cfg)
	if err != nil {
		return fmt.Errorf("create the demo: %w", err)
	}
	running, err := newHubs(cfg, state)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, h := range running {
		group.Go(func() error { return runHub(ctx, cfg, h.Hub) })
	}
	group.Go(func() error {
		err := virtualhub.Serve(ctx, virtualhub.ServeConfig{Hubs: running, DataDir: string(cfg.Dir)})
		if err != nil { // the demo works without `hubcloud sim`
			cfg.Logger.Warn("virtual hubs not controllable", "error", err)
		}
		return nil
	})
	added := make(chan struct{})
	group.Go(func() error {
		defer close(added)
		for _, h := range hubs {
			if err := addHub(ctx, cfg, state, h.id, h.name); err != nil {
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
		case <-time.After(patience):
			cfg.Logger.Warn("virtual hubs not online yet", "enroll_url", cfg.Endpoints.PublicURL)
		}
		link, err := signInLink(ctx, cfg)
		if err != nil {
			return err
		}
		ready(state, link)
		return nil
	})
	return group.Wait()
}

// newHubs makes the demo's virtual hubs. If it returns an error, it has closed them.
func newHubs(cfg Config, state State) (running []virtualhub.Served, err error) {
	client, err := enrolmentClient(cfg.TLSCert)
	if err != nil {
		return nil, err
	}
	for _, h := range hubs {
		hub, err := virtualhub.New(virtualhub.Config{
			EnrollURL: cfg.Endpoints.PublicURL, Serial: h.id.Serial(), Secret: state.Secrets[h.id],
			Dir:        cfg.Dir.Path("virtualhubs", string(h.id)),
			Installer:  5 * time.Second,
			BackoffMax: 2 * time.Second, HTTPClient: client,
			Logger: cfg.Logger.With("component", "virtualhub"),
		})
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

// enrolmentClient returns the client that hubs enrol with. It trusts the certificates in a file, if
// the path is not empty.
func enrolmentClient(certificate string) (*http.Client, error) {
	if certificate == "" {
		return build.HTTPClient(enrolmentTimeout), nil
	}
	text, err := os.ReadFile(certificate)
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	roots.AppendCertsFromPEM(text)
	return build.TrustingHTTPClient(enrolmentTimeout, roots), nil
}

// runHub runs a virtual hub until ctx ends.
func runHub(ctx context.Context, cfg Config, hub *virtualhub.Hub) error {
	err := hub.Run(ctx)
	if closeErr := hub.Close(); closeErr != nil {
		cfg.Logger.Warn("virtual hub not closed", "hub_id", hub.ID(), "error", closeErr)
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
func create(ctx context.Context, cfg Config) (State, error) {
	state, err := Load(cfg.Dir)
	if err != nil {
		return state, err
	}
	origin := operator.Origin()
	if state.OrgID == "" {
		state.OrgID, _, err = cfg.Directory.CreateOrg(ctx, origin, "Demo organization", ownerEmail)
		if err != nil {
			return state, err
		}
		if err := state.save(cfg.Dir); err != nil {
			return state, err
		}
	}
	if state.SiteID == "" {
		site, err := cfg.Directory.CreateSite(ctx, origin, state.OrgID, "Demo building")
		if err != nil {
			return state, err
		}
		state.SiteID = site.ID
		if err := state.save(cfg.Dir); err != nil {
			return state, err
		}
	}
	if state.Key == "" {
		state.KeyID, state.Key, err = cfg.Directory.CreateKey(
			ctx, origin, state.OrgID, "Demo", domain.AllScopes(),
		)
		if err != nil {
			return state, err
		}
		if err := state.save(cfg.Dir); err != nil {
			return state, err
		}
	}
	for _, h := range hubs {
		if err := registerHub(ctx, cfg, &state, h.id); err != nil {
			return state, err
		}
	}
	return state, nil
}

// registerHub adds a demo hub to the inventory. It saves the secret before: the directory keeps
// only a hash, so that a secret lost by a kill could not be recovered.
func registerHub(ctx context.Context, cfg Config, state *State, hub domain.HubID) error {
	if state.Secrets[hub] == "" {
		state.Secrets[hub] = directory.NewEnrolmentSecret()
		if err := state.save(cfg.Dir); err != nil {
			return err
		}
	}
	known, _, err := cfg.Directory.Hub(ctx, hub)
	if err != nil || known.Registered {
		return err
	}
	hash := domain.HashEnrolmentSecret(state.Secrets[hub])
	return cfg.Directory.RegisterHub(ctx, operator.Origin(), hub, hash)
}

// addHub waits until a hub is online and adds it to the demo's site.
func addHub(ctx context.Context, cfg Config, state State, hub domain.HubID, name string) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for !cfg.Presence.Online(hub) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	known, _, err := cfg.Directory.Hub(ctx, hub)
	if err != nil || known.OrgID != "" {
		return err
	}
	_, err = cfg.Directory.AddHub(ctx, operator.Origin(), domain.AddHub{
		OrgID: state.OrgID, HubID: hub, SiteID: state.SiteID, Name: &name,
	})
	return err
}

// signInLink returns a link that signs in the demo's owner once.
func signInLink(ctx context.Context, cfg Config) (string, error) {
	now := time.Now()
	token, err := cfg.SignIn.NewLink(ctx, domain.SignInLink{
		Email: ownerEmail, AtOnce: true, CreatedAt: now, ExpiresAt: now.Add(linkTTL),
	})
	return cfg.Endpoints.PublicURL + "/portal/sign-in/" + token, err
}

// HubIDs returns the ids of the demo's hubs.
func HubIDs() []domain.HubID {
	ids := make([]domain.HubID, 0, len(hubs))
	for _, h := range hubs {
		ids = append(ids, h.id)
	}
	return ids
}
