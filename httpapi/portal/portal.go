package portal

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"embed"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams/shares"
)

// Config configures the portal. Every interface must be set, except where noted.
type Config struct {
	Invitations Invitations
	People      People
	SignIn      SignIn
	ReadModels  ReadModels
	Directory   Directory
	KeyUse      KeyUse
	Mails       Mails
	// Provider signs people in besides the mailed links; nil for none.
	Provider Provider

	Hubs     Hubs
	Devices  Devices
	Commands Commands
	History  CommandHistory
	Labels   Labels
	Events   Events
	Feed     Feed
	Book     Book
	// Faults reports what hubs do wrong.
	Faults HubFaults
	// Reported has what devices reported last.
	Reported Reported
	// Readers has the readers of events that name themselves.
	Readers Readers
	// Webhooks delivers events.
	Webhooks Webhooks
	// Codes keeps the codes of locks.
	Codes Codes
	// DisconnectReason returns the broker's reason for the last disconnection of a hub that is
	// offline, nil if unknown.
	DisconnectReason func(hub domain.HubID) *string

	// Unsubscribe has the key of the links that end mails about alarms.
	Unsubscribe Unsubscribe
	// AlarmMailsPerHour is how many mails about alarms a member gets in an hour at most. The page
	// of notifications shows it.
	AlarmMailsPerHour int

	// Freshness reports whether People and Hubs are up to date, and ends the streams of a replica
	// that is cut off. Nil means that they always are.
	Freshness Freshness

	// Retention is how long the hub logs keep events and commands. Defaults to 24 hours.
	Retention time.Duration
	// StreamLifetime is the longest that a stream lasts. Defaults to 15 minutes.
	StreamLifetime time.Duration
	// StreamKeepalive is the time between two keepalive comments, at most 30 s. Defaults to 30 s.
	StreamKeepalive time.Duration
	// StateInterval is how often a stream reads the states of its hubs. Defaults to 15 s.
	StateInterval time.Duration
	// Pace is the least time between two writes of events. Defaults to 100 ms.
	Pace time.Duration
	// StreamsPerMember is how many streams a member may have open on this replica. Defaults to 32.
	StreamsPerMember int
	// Draining is closed when the service begins to stop. Defaults to never.
	Draining <-chan struct{}
	// PublicURL is the service's URL for clients, without /portal. Links in mails begin with it.
	PublicURL string
	// Environment is the environment of API keys that are created here: `live` or `dev`.
	Environment string
	// OpenSignUp lets everyone with a mailbox sign in and create an organization. Otherwise only
	// members and people with an account get a link.
	OpenSignUp bool
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Shares reports the limits of the portal. If nil, nothing reports them.
	Shares *shares.Registry
	// Metrics is where the package registers its metrics. Nil registers none.
	Metrics prometheus.Registerer
}

// maxKeepalive is the longest StreamKeepalive. Pages reconnect after 90 s without a keepalive.
const maxKeepalive = 30 * time.Second

// WithDefaults returns a copy in which fields that are not set have their defaults.
func (c Config) WithDefaults() Config {
	c.Retention = cmp.Or(c.Retention, 24*time.Hour)
	c.StreamLifetime = cmp.Or(c.StreamLifetime, 15*time.Minute)
	c.StreamKeepalive = min(cmp.Or(c.StreamKeepalive, maxKeepalive), maxKeepalive)
	c.StateInterval = cmp.Or(c.StateInterval, 15*time.Second)
	c.Pace = cmp.Or(c.Pace, 100*time.Millisecond)
	c.StreamsPerMember = cmp.Or(c.StreamsPerMember, 32)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

//go:embed pages
var pages embed.FS

// Portal serves the pages. Its methods may be called by several goroutines at once.
type Portal struct {
	Config
	assets   assets
	pages    *template.Template
	origins  *http.CrossOriginProtection
	cookies  cookies
	networks *shares.Rate[netip.Prefix]
	// testMails bounds the test mails of each member.
	testMails *shares.Rate[string]
	// exports bounds the exports under way, and forms the bytes of large forms that are read.
	exports, forms *shares.Pool
	open           *shares.Pool // the members' streams
	atProvider     *shares.Pool // sign-ins that wait for the identity provider
	metrics        *metrics
	outcomes       outcomeCache
}

// New returns the portal.
func New(cfg Config) *Portal {
	cfg = cfg.WithDefaults()
	p := &Portal{
		Config: cfg, assets: loadAssets(), origins: http.NewCrossOriginProtection(),
		networks: newNetworkLimiter(cfg.Shares, linksPerNetwork, cfg.Now()),
		testMails: shares.NewRate[string](
			cfg.Shares, shares.Hourly("test_mails", testMailsPerHour), cfg.Now(),
		),
		open: shares.NewPool(cfg.Shares, shares.PoolConfig{
			Name: "portal_streams", What: "pages are open", Of: "member", Limits: shares.Limits{
				Total: maxStreams, PerID: int64(cfg.StreamsPerMember),
			},
		}),
		forms: shares.NewPool(cfg.Shares, shares.PoolConfig{
			Name: "form_bytes", What: "large forms are read", Of: "member",
			Limits: shares.Limits{Total: 32 * maxStreamForm, PerID: 4 * maxStreamForm},
		}),
		exports: shares.NewPool(cfg.Shares, shares.PoolConfig{
			Name: "exports", What: "exports are under way", Of: "member",
			Limits: shares.Limits{Total: 16, PerOrg: 4, PerID: 1},
		}),
		atProvider: newProviderPool(cfg.Shares),
		metrics:    newMetrics(cfg.Metrics, cfg.Provider),
	}
	if public, err := url.Parse(cfg.PublicURL); err == nil && public.Host != "" {
		p.cookies = cookiesFor(public)
		// A proxy may forward another Host than the browser used. AddTrustedOrigin fails only for a
		// malformed origin.
		_ = p.origins.AddTrustedOrigin(public.Scheme + "://" + public.Host)
	}
	p.pages = template.Must(
		template.New("pages").
			Funcs(template.FuncMap{
				"asset": p.assets.name, "once": rand.Text, "counted": counted, "when": when,
				"until":  until,
				"status": statusText, "clock": clock, "icon": icon,
				"feedSeverities": func() []filterChoice { return feedSeverities },
				"eventTypes":     func() []filterChoice { return eventTypes },
				"card":           card, "channel": channel, "condition": condition,
				"retention": func() string { return durationText(cfg.Retention) },
			}).
			ParseFS(pages, "pages/*.html"),
	)
	return p
}

// contentSecurityPolicy allows nothing from other origins, and no inline script or style.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src " +
	"'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// setPageHeaders sets the header fields that every page has.
func setPageHeaders(header http.Header) {
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY") // for browsers without frame-ancestors
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("X-Robots-Tag", "noindex, nofollow")
	if header.Get("Permissions-Policy") == "" {
		header.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	}
	if header.Get("Referrer-Policy") == "" {
		// Not no-referrer: a browser without Sec-Fetch-Site would send its forms with Origin: null.
		header.Set("Referrer-Policy", "same-origin")
	}
}

// render answers with a page. It writes nothing before the template has been executed, so that a
// failure can still become an error.
func (req *request) render(status int, page string, view any) {
	var body bytes.Buffer
	if err := req.pages.ExecuteTemplate(&body, page, view); err != nil {
		req.recordError(fmt.Errorf("render %s: %w", page, err))
		http.Error(req.w, "something went wrong on our side", http.StatusInternalServerError)
		return
	}
	text := domain.PlainPage(body.Bytes()) // an element <bdi> does not hold what a text never ends
	if writer, ok := req.w.(interface{ Reserve(bytes int) error }); ok && status == http.StatusOK {
		// Unread pages hold memory until the client reads them.
		if err := writer.Reserve(len(text)); err != nil {
			req.writeError(err)
			return
		}
	}
	setPageHeaders(req.w.Header())
	if compressed := req.compressed(text); compressed != nil {
		req.w.Header().Set("Content-Encoding", "gzip")
		text = compressed
	}
	req.w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	req.w.WriteHeader(status)
	if req.http.Method != http.MethodHead {
		_, _ = req.w.Write(text) // the client has gone
	}
}
