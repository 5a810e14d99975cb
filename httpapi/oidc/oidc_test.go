package oidc_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"hubcloud/domain"
	"hubcloud/httpapi/oidc"
	"hubcloud/streams/streamstest"
)

const org = "01940000-0000-7000-8000-000000000001"

type claims map[string]any

// issuer is a provider that tells what a test wants. The real one is tried in test/operators.
type issuer struct {
	*httptest.Server
	key *jose.SigningKey
	// change changes the claims of the next ID token, info is the answer of the user info, document
	// changes the discovery document.
	change   func(claims)
	info     claims
	document func(claims)
	// status is of the token endpoint.
	status int
	// sent is the form of the last token request.
	sent url.Values
}

// secret is the key of all tokens: signing is not what the tests are about.
var secret = newKey()

func start(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{key: secret, status: http.StatusOK}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		document := claims{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize",
			"token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"userinfo_endpoint": i.URL + "/info", "end_session_endpoint": i.URL + "/end",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
		}
		if i.document != nil {
			i.document(document)
		}
		answer(w, document)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, r *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{publicKey()}})
	})
	mux.HandleFunc("/info", func(w http.ResponseWriter, r *http.Request) { answer(w, i.info) })
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		i.sent = r.PostForm
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(i.status)
		given := claims{
			"iss": i.URL, "sub": "1f0c", "aud": "hubs", "nonce": r.PostForm.Get("code"),
			"exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(),
			"email": "Ann@example.org", "email_verified": true, "groups": []string{"ops", "all"},
		}
		if i.change != nil {
			i.change(given)
		}
		signer, err := jose.NewSigner(*i.key, nil)
		if err != nil {
			t.Error(err)
			return
		}
		token, err := jwt.Signed(signer).Claims(map[string]any(given)).Serialize()
		if err != nil {
			t.Error(err)
		}
		_ = json.NewEncoder(w).Encode(claims{
			"access_token": "a", "token_type": "Bearer", "id_token": token,
		})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// write writes a file of --oidc.
func write(t *testing.T, file claims) string {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(file)
	if err == nil {
		err = errors.Join(
			os.WriteFile(filepath.Join(dir, "oidc.json"), text, 0o600),
			os.WriteFile(filepath.Join(dir, "secret"), []byte("s3cret\n"), 0o600),
		)
	}
	streamstest.Must(t, err)
	return filepath.Join(dir, "oidc.json")
}

// provider returns the provider of an issuer, which it has discovered.
func (i *issuer) provider(t *testing.T, more claims) *oidc.Provider {
	t.Helper()
	file := claims{
		"issuer": i.URL, "client_id": "hubs", "client_secret_file": "secret", "name": "Login",
		"groups": []claims{
			{"group": "all", "org": org, "role": "viewer"}, {"group": "ops", "org": org, "role": "admin"},
		},
	}
	maps.Copy(file, more)
	cfg, err := oidc.ReadConfig(write(t, file))
	streamstest.Must(t, err)
	p := oidc.New(cfg, oidc.Options{RedirectURL: "https://hubs.example.org/portal/oidc/callback"})
	streamstest.Must(t, p.Discover(t.Context()))
	return p
}

// finish signs in with what the issuer tells.
func finish(t *testing.T, p *oidc.Provider) (domain.ProvenPerson, error) {
	t.Helper()
	_, attempt, err := p.Begin()
	streamstest.Must(t, err)
	return p.Finish(t.Context(), attempt, url.Values{
		"state": {attempt.State}, "code": {attempt.Nonce}, // the issuer answers with code as nonce
	})
}

// TestSignIn follows the protocol with a provider that does everything right.
func TestSignIn(t *testing.T) {
	t.Parallel()
	i := start(t)
	p := i.provider(t, nil)
	address, attempt, err := p.Begin()
	streamstest.Must(t, err)
	to, _ := url.Parse(address)
	query := to.Query()
	for name, want := range map[string]string{
		"client_id": "hubs", "response_type": "code", "scope": "openid email profile",
		"redirect_uri": "https://hubs.example.org/portal/oidc/callback", "state": attempt.State,
		"nonce": attempt.Nonce, "code_challenge_method": "S256",
	} {
		if got := query.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	person, err := p.Finish(t.Context(), attempt, url.Values{
		"state": {attempt.State}, "code": {attempt.Nonce}, "iss": {i.URL},
	})
	want := domain.ProvenPerson{
		Identity: domain.Identity{Issuer: i.URL, Subject: "1f0c"}, Email: "Ann@example.org",
		Access: map[string]domain.Access{org: domain.AccessAdmin},
	}
	if err != nil || !reflect.DeepEqual(person, want) {
		t.Errorf("got %+v, %v, want %+v", person, err, want)
	}
	if i.sent.Get("code_verifier") != attempt.Verifier {
		t.Errorf("got token request %v, want the verifier", i.sent)
	}
	if got, want := p.SignOutURL(), i.URL+"/end?client_id=hubs"; got != want {
		t.Errorf("SignOutURL: got %s, want %s", got, want)
	}
}

// TestTokensAreChecked: a token of anybody else, for anybody else, for another attempt or without a
// verified address signs nobody in.
func TestTokensAreChecked(t *testing.T) {
	t.Parallel()
	const denied, forbidden = domain.CodeUnauthenticated, domain.CodeForbidden
	set := func(name string, value any) func(claims) {
		return func(c claims) { c[name] = value }
	}
	noEmail := func(c claims) { delete(c, "email") }
	past := time.Now().Add(-time.Minute).Unix()
	info := func(subject string) claims { return claims{"sub": subject, "email": "Ann@example.org"} }
	domains := func(name string) claims { return claims{"email_domains": []string{name}} }
	for name, try := range map[string]struct {
		want   domain.Code // "" if the person is signed in
		change func(claims)
		more   claims // of the file
		info   claims
		key    *jose.SigningKey
	}{
		"another issuer":   {want: denied, change: set("iss", "https://example.org")},
		"another client":   {want: denied, change: set("aud", "others")},
		"another attempt":  {want: denied, change: set("nonce", "x")},
		"expired":          {want: denied, change: set("exp", past)},
		"nobody":           {want: denied, change: set("sub", "")},
		"another key":      {want: denied, key: newKey()},
		"a shared secret":  {want: denied, key: symmetric()},
		"not verified":     {want: forbidden, change: set("email_verified", false)},
		"verified as text": {change: set("email_verified", "true")},
		"no address":       {want: forbidden, change: set("email", "ann")},
		"another domain":   {want: forbidden, more: domains("example.com")},
		"the right domain": {more: domains("Example.org")},
		"another claim": {
			want: forbidden, more: claims{"email_verified_claim": "xms_edov"}, info: info("1f0c"),
		},
		"too many groups": {want: forbidden, info: info("1f0c"), change: func(c claims) {
			delete(c, "groups")
			c["_claim_names"] = claims{"groups": "src1"}
			c["_claim_sources"] = claims{"src1": claims{"endpoint": "https://example.org/groups"}}
		}},
		"user info":       {change: noEmail, info: info("1f0c")},
		"info of another": {want: denied, change: noEmail, info: info("2")},
		"info besides":    {info: claims{"sub": "1f0c", "email": "eve@example.org"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := start(t)
			i.change, i.info = try.change, try.info
			if try.key != nil {
				i.key = try.key
			}
			person, err := finish(t, i.provider(t, try.more))
			if domainCode(err) != try.want {
				t.Errorf("got %+v, %v, want %q", person, err, try.want)
			}
			if err == nil && person.Email != "Ann@example.org" {
				t.Errorf("got %+v, want Ann", person)
			}
		})
	}
}

// TestAnswersOfOthers: what does not come from the provider, or comes for another attempt, is
// rejected before the provider is asked.
func TestAnswersOfOthers(t *testing.T) {
	t.Parallel()
	i := start(t)
	p := i.provider(t, nil)
	_, attempt, err := p.Begin()
	streamstest.Must(t, err)
	for name, query := range map[string]url.Values{
		"no state":       {"code": {"c"}},
		"another state":  {"code": {"c"}, "state": {"x"}},
		"another issuer": {"code": {"c"}, "state": {attempt.State}, "iss": {"https://example.org"}},
		"denied":         {"error": {"access_denied"}, "state": {attempt.State}},
	} {
		_, err := p.Finish(t.Context(), attempt, query)
		if domainCode(err) != domain.CodeUnauthenticated || i.sent != nil {
			t.Errorf("%s: got %v and the request %v, want unauthenticated and none", name, err, i.sent)
		}
	}
	if _, err := p.Finish(t.Context(), domain.SignInAttempt{}, url.Values{
		"code": {"c"}, "state": {""},
	}); domainCode(err) != domain.CodeUnauthenticated || i.sent != nil {
		t.Errorf("without an attempt: got %v, want unauthenticated", err)
	}
}

// TestProviderAway: a provider that does not answer is given from one that says no, and is known
// again once it answers.
func TestProviderAway(t *testing.T) {
	t.Parallel()
	i := start(t)
	p := i.provider(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	streamstest.Must(t, p.Run(ctx))
	i.status = http.StatusBadRequest
	if _, err := finish(t, p); domainCode(err) != domain.CodeUnauthenticated {
		t.Errorf("a rejected code: got %v, want unauthenticated", err)
	}
	i.status = http.StatusBadGateway
	if _, err := finish(t, p); domainCode(err) != domain.CodeServiceUnavailable || p.Answers() {
		t.Errorf("a failing provider: got %v, answers %t, want service_unavailable", err, p.Answers())
	}
	cfg, err := oidc.ReadConfig(write(t, claims{"issuer": i.URL, "client_id": "hubs"}))
	streamstest.Must(t, err)
	unknown := oidc.New(cfg, oidc.Options{})
	if _, _, err := unknown.Begin(); domainCode(err) != domain.CodeServiceUnavailable {
		t.Errorf("before the first discovery: got %v, want service_unavailable", err)
	}
}

// TestDiscoveryIsChecked: requests go only where the operator's issuer says, encrypted.
func TestDiscoveryIsChecked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(claims){
		"another issuer": func(c claims) { c["issuer"] = "https://example.org" },
		"not encrypted":  func(c claims) { c["token_endpoint"] = "http://192.0.2.1/token" },
		"a file":         func(c claims) { c["jwks_uri"] = "file:///etc/passwd" },
		"too large":      func(c claims) { c["more"] = strings.Repeat("x", 2<<20) },
	} {
		i := start(t)
		p := i.provider(t, nil)
		i.document = change
		if err := p.Discover(t.Context()); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	i := start(t)
	p := i.provider(t, nil)
	i.Config.Handler = http.RedirectHandler("http://192.0.2.1/", http.StatusFound)
	if err := p.Discover(t.Context()); err == nil || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("a redirect: got %v, want it rejected", err)
	}
}

// TestConfigIsChecked: an error names the member and what is allowed.
func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	rule := func(group, org, role string) []claims {
		return []claims{{"group": group, "org": org, "role": role}}
	}
	for name, try := range map[string]struct {
		change claims
		want   string
	}{
		"plain issuer":    {claims{"issuer": "http://login.example.org"}, "issuer: must be https"},
		"no client":       {claims{"client_id": ""}, "client_id: must not be empty"},
		"typing error":    {claims{"isuer": "x"}, `unknown field "isuer"`},
		"no secret":       {claims{"client_secret_file": "nowhere"}, "client_secret_file: "},
		"no certificates": {claims{"ca_file": "secret"}, "ca_file: "},
		"scopes":          {claims{"scopes": []string{"email"}}, "scopes: must contain openid"},
		"seldom":          {claims{"confirm_every": "1000h"}, "confirm_every: must be 5m to 720h"},
		"no unit":         {claims{"confirm_every": "8"}, "confirm_every: must be a duration"},
		"domain":          {claims{"email_domains": []string{"@"}}, "email_domains: "},
		"organization":    {claims{"groups": rule("a", "Acme", "admin")}, "groups: rule 0: "},
		"no group":        {claims{"groups": rule("", org, "admin")}, "groups: rule 0: "},
		"role":            {claims{"groups": rule("a", org, "boss")}, "groups: rule 0: role"},
	} {
		file := claims{
			"issuer": "https://login.example.org", "client_id": "hubs", "client_secret_file": "secret",
		}
		maps.Copy(file, try.change)
		if _, err := oidc.ReadConfig(write(t, file)); err == nil ||
			!strings.Contains(err.Error(), try.want) {
			t.Errorf("%s: got %v, want %q", name, err, try.want)
		}
	}
}

func domainCode(err error) domain.Code {
	if err == nil {
		return ""
	}
	return domain.CodeOf(err)
}
