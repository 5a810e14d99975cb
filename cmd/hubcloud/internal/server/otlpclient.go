package server

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"hubcloud/streams"
)

const (
	// exportTimeout is the default of OTEL_EXPORTER_OTLP_TIMEOUT.
	exportTimeout = 10 * time.Second
	// exportPause is the first pause before a request is tried again; it doubles up to
	// maxExportPause.
	exportPause    = time.Second
	maxExportPause = 30 * time.Second
	// maxExportAnswer is the most that is read of a collector's answer.
	maxExportAnswer = 64 << 10
	// grpcMethod is the path of the gRPC method that takes spans.
	grpcMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
)

// otlpClient implements otlptrace.Client: it sends spans to a collector by OTLP as http/protobuf or
// over gRPC, which are both a POST of the same message. The exporter's own clients come with a
// fifth of all packages that a build of this program would compile: 108 of 607.
type otlpClient struct {
	client  http.Client
	url     string
	headers http.Header
	grpc    bool
	gzip    bool
}

// newOTLPClient returns a client as configured by the environment. Errors name the variable whose
// value is not allowed; errProtocol is one.
func newOTLPClient(userAgent string) (*otlpClient, error) {
	c := &otlpClient{gzip: otlpVariable("COMPRESSION") == "gzip"}
	switch protocol := otlpVariable("PROTOCOL"); protocol {
	case "", "http/protobuf":
	case "grpc":
		c.grpc = true
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %w, got %q", errProtocol, protocol)
	}
	var err error
	if c.url, err = c.endpoint(); err != nil {
		return nil, err
	}
	c.client.Timeout = exportTimeout
	if text := otlpVariable("TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT: %q is no number of milliseconds", text)
		}
		c.client.Timeout = time.Duration(ms) * time.Millisecond
	}
	config, err := otlpTLS()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config}
	if c.grpc {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetHTTP2(true)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	c.client.Transport = transport
	c.headers = c.newHeaders(userAgent)
	return c, nil
}

// endpoint returns the URL to which spans are sent.
func (c *otlpClient) endpoint() (string, error) {
	text, path := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), ""
	if text == "" {
		text, path = os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "/v1/traces"
	}
	if c.grpc && !strings.Contains(text, "://") {
		scheme := "https://"
		if strings.EqualFold(otlpVariable("INSECURE"), "true") {
			scheme = "http://"
		}
		text = scheme + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %q is no http or https URL", text)
	}
	if c.grpc {
		u.Path = grpcMethod
	} else {
		u.Path = cmp.Or(strings.TrimSuffix(u.Path, "/")+path, "/")
	}
	return u.String(), nil
}

// newHeaders returns the headers of each request: the environment's win.
func (c *otlpClient) newHeaders(userAgent string) http.Header {
	headers := http.Header{
		"User-Agent": {userAgent}, "Content-Type": {"application/x-protobuf"},
	}
	if c.gzip {
		headers.Set("Content-Encoding", "gzip")
	}
	if c.grpc {
		headers = http.Header{
			"User-Agent": {userAgent}, "Content-Type": {"application/grpc"}, "Te": {"trailers"},
		}
		if c.gzip {
			headers.Set("Grpc-Encoding", "gzip")
		}
	}
	for entry := range strings.SplitSeq(otlpVariable("HEADERS"), ",") {
		name, value, ok := strings.Cut(entry, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); ok && err == nil && name != "" {
			headers.Set(name, value)
		}
	}
	return headers
}

// otlpTLS returns the authorities and the certificate that the environment names.
func otlpTLS() (*tls.Config, error) {
	config := &tls.Config{}
	if path := otlpVariable("CERTIFICATE"); path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: no certificate in %s", path)
		}
	}
	if path := otlpVariable("CLIENT_CERTIFICATE"); path != "" {
		pair, err := tls.LoadX509KeyPair(path, otlpVariable("CLIENT_KEY"))
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// otlpVariable returns the exporter's setting with a name: the variable for traces, or the one for
// everything.
func otlpVariable(name string) string {
	return firstVariable("OTEL_EXPORTER_OTLP_TRACES_"+name, "OTEL_EXPORTER_OTLP_"+name)
}

// Start does nothing: the collector may start later.
func (c *otlpClient) Start(context.Context) error { return nil }

// Stop closes idle connections.
func (c *otlpClient) Stop(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans, and tries again until ctx ends while the collector is away or busy.
func (c *otlpClient) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// The message of a request has the same fields.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	if c.gzip {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err = w.Write(body)
		if err = errors.Join(err, w.Close()); err != nil {
			return err
		}
		body = packed.Bytes()
	}
	if c.grpc {
		prefix := make([]byte, 5, 5+len(body))
		if c.gzip {
			prefix[0] = 1
		}
		binary.BigEndian.PutUint32(prefix[1:], uint32(len(body)))
		body = append(prefix, body...)
	}
	for pause := exportPause; ; pause = min(2*pause, maxExportPause) {
		after, err := c.post(ctx, body)
		if err == nil || after < 0 || !streams.Sleep(ctx, max(after, pause)) {
			return err
		}
	}
}

// post sends a request. After an error, after is how long the collector wants to be left alone, or
// negative if another try would have the same answer.
func (c *otlpClient) post(ctx context.Context, body []byte) (after time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	request.Header = c.headers
	response, err := c.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxExportAnswer))
	if err != nil {
		return 0, err
	}
	if response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s answers %s: %.200q", c.url, response.Status, answer)
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		if slices.Contains([]int{429, 502, 503, 504}, response.StatusCode) {
			return time.Duration(seconds) * time.Second, err
		}
		return -1, err
	}
	if !c.grpc {
		return 0, nil
	}
	// An answer without a message has its trailers in the header.
	status := cmp.Or(response.Trailer.Get("Grpc-Status"), response.Header.Get("Grpc-Status"))
	if status == "0" {
		return 0, nil
	}
	text := cmp.Or(response.Trailer.Get("Grpc-Message"), response.Header.Get("Grpc-Message"))
	err = fmt.Errorf("%s answers with gRPC status %q: %.200q", c.url, status, text)
	// cancelled, deadline exceeded, aborted, out of range, unavailable, data loss
	if slices.Contains([]string{"1", "4", "10", "11", "14", "15"}, status) {
		return 0, err
	}
	return -1, err
}
