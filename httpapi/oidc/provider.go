package oidc

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	// probeInterval is how often the discovery document is read, and retryInterval how often while
	// the provider does not answer.
	probeInterval, retryInterval = 30 * time.Second, 5 * time.Second
	// requestTimeout bounds each request to the provider, and maxAnswer its answer in bytes.
	requestTimeout = 10 * time.Second
	maxAnswer      = 1 << 20
)

// Options are what a Provider needs besides its Config.
type Options struct {
	// RedirectURL is where the provider sends the browser back to. It must be registered there.
	RedirectURL string
	// UserAgent is the service's name in its requests.
	UserAgent string
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// Provider is the identity provider.
type Provider struct {
	cfg     Config
	options Options
	client  *http.Client
	// found is what the newest discovery document says; nil before the first.
	found atomic.Pointer[discovery]
	// answer is the last answer: 0 for none yet, answers or silent.
	answer atomic.Int32
}

const answers, silent = 1, 2

// discovery is what a discovery document says.
type discovery struct {
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	document string
	client   oauth2.Config
	// signOut is the page that ends the session at the provider; "" for none.
	signOut string
}

// New returns the provider of a Config that ReadConfig returned.
func New(cfg Config, options Options) *Provider {
	options.Logger = cmp.Or(options.Logger, slog.Default())
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: cfg.roots, MinVersion: tls.VersionTLS12}
	return &Provider{
		cfg: cfg, options: options,
		client: &http.Client{
			Transport: bounded{transport, options.UserAgent}, Timeout: requestTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return errors.New("the identity provider redirects, which is not followed")
			},
		},
	}
}

// Issuer returns the issuer of the identities.
func (p *Provider) Issuer() string { return p.cfg.Issuer }

// Name returns how the sign-in page calls the provider.
func (p *Provider) Name() string { return p.cfg.Name }

// ConfirmEvery returns how often the provider must confirm a session.
func (p *Provider) ConfirmEvery() time.Duration { return time.Duration(p.cfg.ConfirmEvery) }

// Answers reports whether the provider has answered last.
func (p *Provider) Answers() bool { return p.answer.Load() == answers }

// SignOutURL returns the page that ends the session at the provider; "" for none.
func (p *Provider) SignOutURL() string {
	if found := p.found.Load(); found != nil {
		return found.signOut
	}
	return ""
}

// Run reads the discovery document until ctx ends.
func (p *Provider) Run(ctx context.Context) error {
	for {
		p.noteAnswer(p.Discover(ctx))
		interval := probeInterval
		if !p.Answers() {
			interval = retryInterval
		}
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return nil
		}
	}
}

// noteAnswer remembers whether the provider has answered, and logs a change.
func (p *Provider) noteAnswer(err error) {
	if errors.Is(err, context.Canceled) { // the visitor has gone, or the service stops
		return
	}
	now := int32(answers)
	if err != nil {
		now = silent
	}
	switch was := p.answer.Swap(now); {
	case was == now:
	case err == nil:
		p.options.Logger.Info("identity provider answers", "issuer", p.cfg.Issuer)
	default:
		p.options.Logger.Warn(
			"identity provider does not answer: people sign in by mail or not at all",
			"issuer", p.cfg.Issuer, "error", err,
		)
	}
}

// Discover reads the discovery document. The error is what is wrong with it.
func (p *Provider) Discover(ctx context.Context) error {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.cfg.Issuer)
	if err != nil {
		return err
	}
	var text json.RawMessage
	var document struct {
		Authorization string   `json:"authorization_endpoint"`
		Token         string   `json:"token_endpoint"`
		Keys          string   `json:"jwks_uri"`
		UserInfo      string   `json:"userinfo_endpoint"`
		SignOut       string   `json:"end_session_endpoint"`
		AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := errors.Join(provider.Claims(&text), provider.Claims(&document)); err != nil {
		return err
	}
	for _, endpoint := range []struct{ name, address string }{
		{"authorization_endpoint", document.Authorization}, {"token_endpoint", document.Token},
		{"jwks_uri", document.Keys}, {"userinfo_endpoint", document.UserInfo},
		{"end_session_endpoint", document.SignOut},
	} {
		optional := endpoint.name == "userinfo_endpoint" || endpoint.name == "end_session_endpoint"
		u, err := url.Parse(endpoint.address)
		if (endpoint.address != "" || !optional) && (err != nil || !secure(u)) {
			return fmt.Errorf("%s of the discovery document: must be https://…", endpoint.name)
		}
	}
	if known := p.found.Load(); known != nil && known.document == string(text) {
		return nil // it has the keys
	}
	endpoint := provider.Endpoint()
	endpoint.AuthStyle = p.authStyle(document.AuthMethods)
	p.found.Store(&discovery{
		provider: provider, document: string(text), signOut: p.signOutURL(document.SignOut),
		verifier: provider.Verifier(&oidc.Config{ClientID: p.cfg.ClientID}),
		client: oauth2.Config{
			ClientID: p.cfg.ClientID, Endpoint: endpoint, RedirectURL: p.options.RedirectURL,
			Scopes: p.cfg.Scopes,
		},
	})
	return nil
}

// authStyle returns how the client proves itself, by the methods that the provider supports.
func (p *Provider) authStyle(methods []string) oauth2.AuthStyle {
	basic := len(methods) == 0 // the default of the standard
	for _, method := range methods {
		basic = basic || method == "client_secret_basic"
	}
	if basic && p.cfg.SecretFile != "" {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}

func (p *Provider) signOutURL(endpoint string) string {
	u, err := url.Parse(endpoint)
	if endpoint == "" || err != nil {
		return ""
	}
	query := u.Query()
	query.Set("client_id", p.cfg.ClientID)
	u.RawQuery = query.Encode()
	return u.String()
}

// bounded bounds the answers that it reads.
type bounded struct {
	http.RoundTripper
	userAgent string
}

// RoundTrip sends a request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", b.userAgent)
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	}
	return response, err
}
