package portal_test

import (
	"errors"
	"net/http"
	"testing"

	"hubcloud/domain"
)

// The page of a hub that does not answer is shown without devices, and with the reason.
func TestHubDoesNotAnswer(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	for code, says := range map[domain.Code]string{
		domain.CodeHubOffline: "The hub is offline", domain.CodeHubTimeout: "Took too long",
		domain.CodeHubUnavailable: "Took too long",
	} {
		b.fails = domain.Errorf(code, "took too long")
		has(t, b.want(t, http.StatusOK, "GET", b.path, nil), says, "2.4.1")
	}
	b.fails = errors.New("postgres is away")
	b.want(t, http.StatusInternalServerError, "GET", b.path, nil)
}
