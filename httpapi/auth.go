package httpapi

import (
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"time"

	"hubcloud/domain"
)

var (
	errNoKey = domain.Errorf(
		domain.CodeUnauthenticated,
		"Authorization: must be given once, in the form `Authorization: Bearer <API_KEY>`",
	)
	errBadKey = domain.Errorf(
		domain.CodeUnauthenticated, "Authorization: the API key is unknown or revoked",
	)
)

// authenticate sets the request's API key. It counts a request without a valid key on the client's
// address, so that guessing keys soon gets 429 instead of 401.
func (a *api) authenticate(req *request) error {
	key, err := a.findKey(req)
	if err != nil {
		if limited := req.countForAddress(); limited != nil {
			return limited
		}
		return err
	}
	req.key = key.KeyAccess
	req.keyEnds = key.ends
	if a.KeyUse != nil {
		a.KeyUse.Used(key.ID, req.start)
		if key.former {
			a.KeyUse.Used(domain.FormerKeyUse(key.ID), req.start)
		}
	}
	return nil
}

// verifiedKey is an API key that a request has presented.
type verifiedKey struct {
	domain.KeyAccess
	// ends is when the key expires, or the presented secret stops working; zero for never.
	ends time.Time
	// former reports that the secret is one from before a rotation.
	former bool
}

// findKey returns the request's API key once this replica is known to be up to date.
func (a *api) findKey(req *request) (verifiedKey, error) {
	if len(req.http.Header["Authorization"]) > 0 {
		// Without news from the directory a key that this replica knows may have been revoked, and
		// one that it does not know may be valid.
		if err := a.awaitFresh(req.ctx); err != nil {
			return verifiedKey{}, err
		}
	}
	return a.verifyKey(req.http.Header, req.start)
}

// verifyKey returns the key of the Authorization header. An unknown key id takes the same time as a
// wrong secret and has the same error. Only who has the secret learns that a key has expired.
func (a *api) verifyKey(header http.Header, now time.Time) (verifiedKey, error) {
	values := header["Authorization"]
	if len(values) != 1 {
		return verifiedKey{}, errNoKey
	}
	token, ok := bearerToken(values[0])
	if !ok {
		return verifiedKey{}, errNoKey
	}
	presented, err := domain.ParseKey(token)
	if err != nil || presented.Environment != a.Environment {
		return verifiedKey{}, errBadKey
	}
	key, found := a.Keys.Key(presented.ID)
	verified := verifiedKey{KeyAccess: key, ends: key.ExpiresAt}
	hash := presented.SecretHash()
	equals := func(stored []byte) bool { return subtle.ConstantTimeCompare(hash[:], stored) == 1 }
	matches := equals(key.SecretHash[:]) // for an unknown id too, which takes as long
	for _, former := range key.Former {
		if equals(former.Hash) {
			matches, verified.former = true, true
			if verified.ends.IsZero() || former.Until.Before(verified.ends) {
				verified.ends = former.Until
			}
		}
	}
	switch {
	case !found || !matches || key.Environment != a.Environment:
		return verifiedKey{}, errBadKey
	case !verified.ends.IsZero() && !now.Before(verified.ends):
		return verifiedKey{}, endedKey(verified)
	}
	return verified, nil
}

// endedKey returns the error for a key, or a secret of it, whose time is over.
func endedKey(key verifiedKey) error {
	what := "expired"
	if key.former && key.ends != key.ExpiresAt {
		what = "was rotated, and this secret stopped working"
	}
	return domain.Errorf(
		domain.CodeUnauthenticated, "Authorization: the API key %s at %s", what,
		domain.FormatTime(key.ends),
	)
}

// keyEnded reports whether the request's key was revoked or changed, or its time is over.
func (req *request) keyEnded() bool {
	return isClosed(req.key.Revoked) || !req.keyEnds.IsZero() && !req.api.Now().Before(req.keyEnds)
}

// bearerToken returns what follows the scheme Bearer, which may be in any case (RFC 9110, section
// 11.1; RFC 6750, section 2.1).
func bearerToken(value string) (string, bool) {
	scheme, token, _ := strings.Cut(value, " ")
	token = strings.TrimLeft(token, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// requireScope returns insufficient_scope if the key does not have the scope. Every key has "".
func requireScope(key domain.KeyAccess, scope domain.Scope) error {
	if scope == "" || slices.Contains(key.Scopes, scope) {
		return nil
	}
	return domain.Errorf(
		domain.CodeInsufficientScope, "the API key does not have the scope %s", scope,
	)
}
