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

	"hubcloud/httpapi/portal/live"
	"hubcloud/httpapi/ratelimit"
)

// Config is what the portal needs. All interfaces must be given.
type Config struct {
	Invitations Invitations
	People      People
	SignIn      SignIn
	ReadModels  ReadModels
	Directory   Directory
	KeyUse      KeyUse
	Mails       Mails
	// What the pages about hubs show and do.
	Live     *live.Live
	Owners   Owners
	Devices  HubDevices
	Commands Commands
	History  CommandHistory
	Labels   Labels

	// Freshness tells whether People and Owners still hold; nil: they always do.
	Freshness live.Freshness

	// PublicURL is where the service is reached from outside, without /portal: links in mails begin
	// with it.
	PublicURL string
	// Environment is that of the API keys made here, `live` or `dev`.
	Environment string
	// OpenSignUp lets anybody sign in who has a mailbox, and begin an organization. Otherwise only
	// members of one get a link.
	OpenSignUp bool
	// LinksPerNetwork and LinksPerAddress are how many links to sign in may be asked for within an
	// hour; 0 stands for the defaults.
	LinksPerNetwork, LinksPerAddress int
	// Now is the clock of what visitors do; nil stands for time.Now.
	Now func() time.Time
	// Log gets what failed; nil discards it.
	Log *slog.Logger
	// Metrics is where the package's metrics are registered; nil: nowhere.
	Metrics prometheus.Registerer
}

//go:embed pages
var pages embed.FS

// Portal is what the handlers share.
type Portal struct {
	Config
	assets   assets
	pages    *template.Template
	origins  *http.CrossOriginProtection
	cookies  cookies
	networks *ratelimit.Limiter[netip.Prefix]
	metrics  *metrics
}

// New makes the portal. Its Routes are for the API's router.
func New(cfg Config) *Portal {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.LinksPerNetwork = cmp.Or(cfg.LinksPerNetwork, DefaultLinksPerNetwork)
	cfg.LinksPerAddress = cmp.Or(cfg.LinksPerAddress, DefaultLinksPerAddress)
	p := &Portal{
		Config: cfg, assets: loadAssets(), origins: http.NewCrossOriginProtection(),
		networks: newNetworkLimits(cfg.LinksPerNetwork, cfg.Now()),
		metrics:  newMetrics(cfg.Metrics),
	}
	if public, err := url.Parse(cfg.PublicURL); err == nil && public.Host != "" {
		p.cookies = cookiesFor(public)
		// A proxy may hand on another Host than the one in the browser's bar. It fails only for
		// what is no origin.
		_ = p.origins.AddTrustedOrigin(public.Scheme + "://" + public.Host)
	}
	p.pages = template.Must(
		template.New("pages").
			Funcs(template.FuncMap{
				"asset": p.assets.name, "once": rand.Text, "counted": count, "when": when,
				"card": card, "channel": channel,
			}).
			ParseFS(pages, "pages/*.html"),
	)
	return p
}

// policy is the content security policy of every page: nothing from elsewhere, no script and no
// style that stands in a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// setHeaders sets what every page says about itself.
func setHeaders(header http.Header) {
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", policy)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY") // for browsers without frame-ancestors
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("X-Robots-Tag", "noindex, nofollow")
	if header.Get("Referrer-Policy") == "" {
		// To others nothing; to ourselves what lets a browser without Sec-Fetch-Site send an Origin
		// with its forms.
		header.Set("Referrer-Policy", "same-origin")
	}
}

// render answers with a page. Nothing is out before the page is whole.
func (v *visit) render(status int, page string, view any) {
	var body bytes.Buffer
	if err := v.p.pages.ExecuteTemplate(&body, page, view); err != nil {
		v.fault(fmt.Errorf("render %s: %w", page, err))
		http.Error(v.w, "something failed on our side", http.StatusInternalServerError)
		return
	}
	if writer, ok := v.w.(interface{ Reserve(bytes int) error }); ok && status == http.StatusOK {
		// pages to visitors who do not read take memory already
		if err := writer.Reserve(body.Len()); err != nil {
			v.fail(err)
			return
		}
	}
	setHeaders(v.w.Header())
	v.w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	v.w.WriteHeader(status)
	if v.r.Method != http.MethodHead {
		_, _ = v.w.Write(body.Bytes()) // a visitor who left is the visitor's affair
	}
}
