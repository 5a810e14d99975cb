package installation

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"hubcloud/projections/schema"
)

// The linker sets these variables (-ldflags "-X hubcloud/cmd/hubcloud/internal/installation.version=…"):
// see deploy/release/ldflags.sh. In a build without them they are empty.
var (
	version string
	commit  string
	date    string
)

// Unknown stands for what neither the linker nor the Go command recorded.
const Unknown = "unknown"

// ProgramInfo identifies the program. Every field has a value.
type ProgramInfo struct {
	// Version is the release, such as 1.4.0, or "unknown".
	Version string `json:"version"`
	// Commit is the commit's hash in hexadecimal digits, or "unknown".
	Commit string `json:"commit"`
	// Date is the time of the commit in RFC 3339, or "unknown". It is not the time of the build, so
	// that two builds of a commit are the same.
	Date string `json:"build_date"`
	// Go is the version of the Go toolchain, such as go1.26.0.
	Go string `json:"go"`
	// Schema is the SHA-256 of the definition of the read models, in hexadecimal digits. Programs
	// with the same Schema share read models.
	Schema string `json:"schema"`
}

// Current returns what identifies the running program: what the linker recorded, or else what the
// Go command recorded about a build in a checkout.
func Program() ProgramInfo {
	i := ProgramInfo{
		Version: version, Commit: commit, Date: date, Go: runtime.Version(), Schema: schema.Hash(),
	}
	if recorded, ok := debug.ReadBuildInfo(); ok {
		i.fill(recorded)
	}
	for _, field := range []*string{&i.Version, &i.Commit, &i.Date} {
		if *field == "" {
			*field = Unknown
		}
	}
	return i
}

// fill sets empty fields to what the Go command recorded.
func (i *ProgramInfo) fill(recorded *debug.BuildInfo) {
	if v := recorded.Main.Version; i.Version == "" && v != "(devel)" {
		i.Version = strings.TrimPrefix(v, "v")
	}
	for _, setting := range recorded.Settings {
		switch {
		case setting.Key == "vcs.revision" && i.Commit == "":
			i.Commit = setting.Value
		case setting.Key == "vcs.time" && i.Date == "":
			i.Date = setting.Value
		}
	}
}

// UserAgent returns the header User-Agent of the program's requests, such as hubcloud/1.4.0.
func UserAgent() string { return "hubcloud/" + Program().Version }

// HTTPClient returns a client whose requests carry UserAgent. Each request, including its answer,
// takes at most the timeout; 0 means no limit.
func HTTPClient(timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: transport{UserAgent(), http.DefaultTransport}}
}

// transport adds a User-Agent to requests.
type transport struct {
	userAgent string
	http.RoundTripper
}

// RoundTrip sends a copy of the request with the User-Agent.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", t.userAgent)
	return t.RoundTripper.RoundTrip(r)
}

// CloseIdleConnections closes the idle connections of the transport, which an http.Client finds by
// this method.
func (t transport) CloseIdleConnections() {
	(&http.Client{Transport: t.RoundTripper}).CloseIdleConnections()
}
