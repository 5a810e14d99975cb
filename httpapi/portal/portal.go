package portal

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
)

// Invitations accepts invitations.
type Invitations interface {
	// AcceptInvitation makes whoever has the token a member, or says that it was accepted before. A domain.Error not_found says that the token is
	// none (any more), domain.ErrInvitationExpired that it came too late. It gives the request an actor of its own.
	AcceptInvitation(ctx context.Context, o domain.Origin, token string) (domain.Acceptance, error)
}

// Config is what the portal needs. Invitations must be given.
type Config struct {
	Invitations Invitations
	// Now is the clock of what visitors do; nil stands for time.Now.
	Now func() time.Time
	// Log gets what failed; nil discards it.
	Log *slog.Logger
}

//go:embed pages
var pages embed.FS

// portal is what the handlers share.
type portal struct {
	Config
	assets assets
	pages  *template.Template
}

// New makes the handler of everything under /portal.
func New(cfg Config) http.Handler {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	p := &portal{Config: cfg, assets: loadAssets()}
	p.pages = template.Must(template.New("pages").Funcs(template.FuncMap{"asset": p.assets.name}).ParseFS(pages, "pages/*.html"))
	return p
}

// ServeHTTP answers GET and HEAD; the router lets no other method through.
func (p *portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if token, ok := strings.CutPrefix(r.URL.Path, "/portal/invitations/"); ok {
		p.invitation(w, r, token)
		return
	}
	p.assets.serve(w, r, strings.TrimPrefix(r.URL.Path, "/portal/assets/"))
}

// policy is the content security policy of every page.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// setHeaders sets what every page says about itself.
func setHeaders(header http.Header) {
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", policy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY") // for browsers without frame-ancestors
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("X-Robots-Tag", "noindex, nofollow")
}

// render answers with a page. Nothing is out before the page is whole.
func (p *portal) render(w http.ResponseWriter, r *http.Request, status int, page string, view any) {
	var body bytes.Buffer
	if err := p.pages.ExecuteTemplate(&body, page, view); err != nil {
		p.Log.ErrorContext(r.Context(), "a page cannot be rendered", "page", page, "request_id", requestID(w), "error", err)
		http.Error(w, "something failed on our side", http.StatusInternalServerError)
		return
	}
	setHeaders(w.Header())
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // a visitor who left is the visitor's affair
}

// requestID is the id that the router has given the request.
func requestID(w http.ResponseWriter) string { return w.Header().Get("X-Request-Id") }
