package identity

import (
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
)

// reason is the reason of a rejected connection in logs and metrics.
type reason string

const (
	reasonNotMQTT       reason = "not_mqtt"
	reasonNoCertificate reason = "no_certificate"
	// reasonOtherName: certificate name and MQTT client id are not the same hub id.
	reasonOtherName  reason = "other_name"
	reasonUnknownHub reason = "unknown_hub"
	reasonBlocked    reason = "blocked"
	// reasonTooOften: the hub has exceeded HubConnections, or the client was rejected too often.
	reasonTooOften reason = "too_often"
	// reasonNotCurrent: the certificate is not the hub's current one.
	reasonNotCurrent  reason = "not_current_certificate"
	reasonNoDirectory reason = "directory_unavailable"
	// reasonUnknownTap: there is no such user, or its password is wrong.
	reasonUnknownTap reason = "unknown_tap"
	reasonNoTaps     reason = "taps_unavailable"
	// reasonTooLarge: the user name and password have more than maxLogin bytes.
	reasonTooLarge reason = "login_too_large"
	// reasonTooLate: the request waited until the broker had given up.
	reasonTooLate reason = "too_late"

	// resultAccepted is the metric's label for an admitted connection.
	resultAccepted = "accepted"
)

// reasons returns all reasons.
func reasons() []reason {
	return []reason{
		reasonNotMQTT, reasonNoCertificate, reasonOtherName, reasonUnknownHub, reasonBlocked,
		reasonTooOften, reasonNotCurrent, reasonNoDirectory, reasonUnknownTap, reasonNoTaps,
		reasonTooLarge, reasonTooLate,
	}
}

// lasts reports whether the client would be rejected for the reason again.
func (r reason) lasts() bool {
	switch r {
	case reasonNoDirectory, reasonNoTaps, reasonTooLate, reasonTooOften:
		return false
	}
	return true
}

// rejection is the error of a rejected connection.
type rejection struct {
	reason reason
	cause  error
	// silent is set if the client gets no answer, since it or others at its address were rejected too
	// often.
	silent bool
}

func reject(r reason, cause error) *rejection { return &rejection{reason: r, cause: cause} }

// Error returns the reason and the cause, if there is one.
func (r *rejection) Error() string {
	if r.cause == nil {
		return string(r.reason)
	}
	return string(r.reason) + ": " + r.cause.Error()
}

// Unwrap returns the cause.
func (r *rejection) Unwrap() error { return r.cause }

const (
	// rejectionLogInterval is the shortest time between two log lines about the same client and
	// reason. A hub that is locked out tries for days.
	rejectionLogInterval = time.Minute
	// rejectionsKept limits the remembered clients.
	rejectionsKept = 4096
)

// rejectionLog logs rejections, each client and reason at most once per rejectionLogInterval.
type rejectionLog struct {
	logger *slog.Logger
	now    func() time.Time

	mu   sync.Mutex
	last map[rejectionKey]time.Time
}

type rejectionKey struct {
	client string
	reason reason
}

func newRejectionLog(logger *slog.Logger, now func() time.Time) *rejectionLog {
	return &rejectionLog{logger: logger, now: now, last: map[rejectionKey]time.Time{}}
}

func (l *rejectionLog) add(request *jwt.AuthorizationRequestClaims, r *rejection) {
	client, host := request.ClientInformation.MQTT, request.ClientInformation.Host
	if !l.due(rejectionKey{client: client, reason: r.reason}) {
		return
	}
	attrs := []any{"client_id", client, "address", host, "reason", string(r.reason)}
	if client == "" {
		attrs[0], attrs[1] = "user", request.ConnectOptions.Username
	}
	if certificate, err := shownCertificate(request); err == nil {
		attrs = append(
			attrs, "certificate_name", certificate.Subject.CommonName,
			"fingerprint", fingerprint(certificate.Raw),
		)
	}
	if r.cause == nil {
		l.logger.Info("connection rejected", attrs...)
		return
	}
	// A rejection with a cause is a failure of the service, not of the client.
	l.logger.Warn("connection rejected", append(attrs, "error", r.cause)...)
}

func (l *rejectionLog) due(key rejectionKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if last, ok := l.last[key]; ok && now.Sub(last) < rejectionLogInterval {
		return false
	}
	if len(l.last) >= rejectionsKept {
		clear(l.last) // some lines are then repeated early
	}
	l.last[key] = now
	return true
}
