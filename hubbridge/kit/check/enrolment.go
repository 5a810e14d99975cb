package check

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/protocol"
)

const (
	// enrolmentPath is where a hub gets its certificates.
	enrolmentPath = "/link/v1/certificates"
	// maxBodyBytes bounds the body of an enrolment, as in the service's API.
	maxBodyBytes = 64 << 10
	// shortLife is how long the first certificate is valid: less than the 30 days at which a hub
	// must renew it.
	shortLife = 20 * 24 * time.Hour
	// certificateLife is how long a certificate of identity.Authority is valid.
	certificateLife = 365 * 24 * time.Hour
	// maxCertificates bounds the certificates of a check, so that a hub that enrols in a loop ends.
	maxCertificates = 20
)

// inventory is the directory of the check: one hub and its certificates. It is what the service
// keeps of a hub in its directory log, in memory.
type inventory struct {
	mu           sync.Mutex
	hub          domain.HubState
	certificates []domain.IssueCertificate
	// former are the fingerprints of the certificates of earlier checks with the same state.
	former []string
}

// Hub returns the state of the hub, as identity.Directory describes it.
func (i *inventory) Hub(
	_ context.Context, hub domain.HubID,
) (domain.HubState, uint64, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if hub != i.hub.ID {
		return domain.HubState{}, 0, nil
	}
	return i.hub, 0, nil
}

// IssueCertificate makes a certificate the hub's current one.
func (i *inventory) IssueCertificate(
	_ context.Context, _ domain.Origin, _ domain.HubID, issued domain.IssueCertificate,
) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.certificates) >= maxCertificates {
		return domain.RateLimited(
			time.Minute, "too many certificates were issued to this hub recently",
		)
	}
	i.certificates = append(i.certificates, issued)
	return nil
}

// current returns the certificate issued last, and how many have been issued.
func (i *inventory) current() (issued domain.IssueCertificate, count int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if count = len(i.certificates); count > 0 {
		issued = i.certificates[count-1]
	}
	return issued, count
}

// has reports whether a certificate was issued, in this check or an earlier one.
func (i *inventory) has(fingerprint string) bool {
	return slices.Contains(i.fingerprints(), fingerprint)
}

// fromEarlierCheck reports whether a certificate is the last one issued, and an earlier check did.
func (i *inventory) fromEarlierCheck(fingerprint string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	last := len(i.former) - 1
	return len(i.certificates) == 0 && last >= 0 && i.former[last] == fingerprint
}

// fingerprints returns the fingerprints of the hub's certificates, the last one issued at the end.
func (i *inventory) fingerprints() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := slices.Clone(i.former)
	for _, issued := range i.certificates {
		all = append(all, issued.Fingerprint)
	}
	return all
}

// authorityClock is the clock of the authority. It is behind until the first certificate has been
// issued, so that this certificate is about to end.
func (c *Check) authorityClock() time.Time {
	if _, count := c.inventory.current(); count == 0 {
		return time.Now().Add(shortLife - certificateLife)
	}
	return time.Now()
}

// serveUnknownPath answers requests for other paths. A POST is an enrolment of a hub that has been
// configured with a wrong address; anything else may be a person with a browser.
func (c *Check) serveUnknownPath(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "This is `hubcloud hub check`. Hubs enrol with POST "+enrolmentPath+".",
			http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	c.rejectEnrolment(w, http.StatusNotFound, nil, domain.Errorf(
		domain.CodeNotFound, "no route POST %.200q; hubs enrol with POST %s", r.URL.Path,
		enrolmentPath,
	))
}

// serveEnrolment is POST /link/v1/certificates.
func (c *Check) serveEnrolment(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	var request protocol.CertificateRequest
	switch {
	case r.Method != http.MethodPost:
		c.rejectEnrolment(w, http.StatusMethodNotAllowed, body, domain.Errorf(
			domain.CodeInvalidRequest, "the method must be POST",
		))
		return
	case !isJSON(r.Header.Get("Content-Type")):
		c.rejectEnrolment(w, http.StatusBadRequest, nil, domain.Errorf(
			domain.CodeInvalidRequest, "Content-Type: must be application/json",
		))
		return
	case err != nil || json.Unmarshal(body, &request) != nil:
		c.rejectEnrolment(w, http.StatusBadRequest, body, domain.Errorf(
			domain.CodeInvalidRequest,
			"the body must be a JSON object of at most 64 KiB with serial, secret and csr as texts",
		))
		return
	}
	_, before := c.inventory.current()
	issued, err := c.enrolment.Issue(r.Context(), request)
	if err != nil {
		known := new(domain.Error)
		if !errors.As(err, &known) {
			known = domain.Errorf(domain.CodeInternal, "%v", err)
		}
		c.rejectEnrolment(w, enrolmentStatus(known.Code), nil, known)
		return
	}
	if err := c.saveState(); err != nil {
		c.cfg.Logger.Error("state of the check not saved", "error", err)
	}
	c.mu.Lock()
	c.showStranger = false // before the hub can connect with the answer
	c.mu.Unlock()
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(issued) // a hub that has gone asks again

	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass("enrols")
	if before > 0 {
		c.pass("renews-certificate")
	}
	c.notify()
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}

// rejectEnrolment answers an enrolment with an error. body is nil if it holds the secret.
func (c *Check) rejectEnrolment(w http.ResponseWriter, status int, body []byte, err *domain.Error) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"type": err.Code, "message": err.Message, "request_id": "hub-check",
	}})
	c.mu.Lock()
	defer c.mu.Unlock()
	if status != http.StatusTooManyRequests {
		c.fail(
			"enrols", body, "an enrolment was answered with %d %s: %s", status, err.Code,
			err.Message,
		)
	}
}

func enrolmentStatus(code domain.Code) int {
	switch code {
	case domain.CodeInvalidRequest:
		return http.StatusBadRequest
	case domain.CodeUnauthenticated:
		return http.StatusUnauthorized
	case domain.CodeRateLimited:
		return http.StatusTooManyRequests
	default:
		return http.StatusInternalServerError
	}
}

// newEnrolment opens the authority in dir and returns the enrolment.
func (c *Check) newEnrolment(dir string) (err error) {
	c.authority, err = identity.OpenAuthority(identity.AuthorityConfig{
		Dir: dir, Hosts: []string{c.cfg.Host}, Now: c.authorityClock, Logger: c.cfg.Logger,
	})
	if err != nil {
		return err
	}
	c.enrolment, err = identity.NewEnrolment(identity.EnrolmentConfig{
		Authority: c.authority, Directory: &c.inventory, Broker: c.BrokerURL, Logger: c.cfg.Logger,
	})
	return err
}
