package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"hubcloud/domain"
)

var (
	errNoKey = domain.Errorf(
		domain.CodeUnauthenticated,
		"Authorization: an API key is needed, in exactly one header of the form `Authorization: Bearer <API_KEY>`",
	)
	errBadKey = domain.Errorf(
		domain.CodeUnauthenticated, "Authorization: the API key is unknown or revoked",
	)
)

// authenticate finds out whose request it is, and counts it: on the key when that is valid, else on
// the client's address. Whoever tries keys gets 429 in place of 401 once the address has used up
// its allowance.
func (a *api) authenticate(x *exchange) error {
	if len(x.r.Header["Authorization"]) > 0 {
		// A key may be revoked, and an unknown one valid, as long as this replica does not hear the
		// directory.
		if err := a.confirm(x.ctx); err != nil {
			if limited := x.spendOfAddress(); limited != nil {
				return limited
			}
			return err
		}
	}
	key, err := a.identify(x.r.Header)
	if err != nil {
		if limited := x.spendOfAddress(); limited != nil {
			return limited
		}
		return err
	}
	x.key = key
	if a.KeyUse != nil {
		a.KeyUse.Used(key.ID, x.start)
	}
	return x.spend(a.keys.Take(key.ID, x.start), a.metrics.limited.key)
}

// identify gives the key that the header proves. An unknown key id costs the same work as a wrong
// secret and has the same answer.
func (a *api) identify(header http.Header) (domain.KeyAccess, error) {
	values := header["Authorization"]
	if len(values) != 1 {
		return domain.KeyAccess{}, errNoKey
	}
	token, ok := bearerToken(values[0])
	if !ok {
		return domain.KeyAccess{}, errNoKey
	}
	key, err := domain.ParseKey(token)
	if err != nil || key.Environment != a.Environment {
		return domain.KeyAccess{}, errBadKey
	}
	access, found := a.Keys.Key(key.ID)
	if matches := key.Matches(access.SecretHash); !matches || !found ||
		access.Environment != a.Environment {
		return domain.KeyAccess{}, errBadKey
	}
	return access, nil
}

// bearerToken gives what follows the scheme Bearer, in any case (RFC 9110, section 11.1; RFC 6750,
// section 2.1).
func bearerToken(value string) (string, bool) {
	scheme, token, _ := strings.Cut(value, " ")
	token = strings.TrimLeft(token, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// requireScope refuses a key that lacks scope; "" is lacked by none.
func requireScope(key domain.KeyAccess, scope domain.Scope) error {
	if scope == "" || slices.Contains(key.Scopes, scope) {
		return nil
	}
	return domain.Errorf(domain.CodeInsufficientScope, "the API key lacks the scope %s", scope)
}
