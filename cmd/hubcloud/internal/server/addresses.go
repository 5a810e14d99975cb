package server

import (
	"net"
	"net/url"
	"strings"

	"hubcloud/cmd/hubcloud/internal/installation"
)

// brokerAddresses returns the HOST:PORT parts of the broker's URLs. URLs and result are separated
// by commas.
func brokerAddresses(urls string) string {
	all := strings.Split(urls, ",")
	for i, one := range all {
		if parsed, err := url.Parse(strings.TrimSpace(one)); err == nil && parsed.Host != "" {
			one = parsed.Host
		}
		all[i] = strings.TrimSpace(one)
	}
	return strings.Join(all, ",")
}

// brokerHosts returns the names under which hubs reach the broker, for its certificate.
func (s *infrastructure) brokerHosts() []string {
	var hosts []string
	for _, address := range []string{s.cfg.PublicMQTT, s.cfg.MQTT} {
		if host, _, err := net.SplitHostPort(address); err == nil {
			hosts = append(hosts, host)
		}
	}
	if public, err := url.Parse(s.cfg.PublicURL); err == nil {
		hosts = append(hosts, public.Hostname())
	}
	return append(hosts, s.cfg.ACMEDomains...)
}

// brokerURL returns the broker's URL that enrolment sends to hubs: --public-mqtt, or the bound
// address with the public URL's host in place of a wildcard.
func (s *web) brokerURL() string {
	if s.cfg.PublicMQTT != "" {
		return "mqtts://" + s.cfg.PublicMQTT
	}
	host, port, err := net.SplitHostPort(s.bound.MQTT)
	if err != nil {
		return "mqtts://" + s.bound.MQTT
	}
	if public, err := url.Parse(s.bound.PublicURL); err == nil && installation.IsWildcard(host) {
		host = public.Hostname()
	}
	return "mqtts://" + net.JoinHostPort(host, port)
}

// publicURL returns the base URL of the API without a trailing slash: --public-url, or one made of
// the first --acme-domain and the bound port, or one for clients on this machine.
func (c Config) publicURL(bound string) string {
	switch {
	case c.PublicURL != "":
		return strings.TrimRight(c.PublicURL, "/")
	case len(c.ACMEDomains) > 0:
		_, port, _ := net.SplitHostPort(bound)
		return httpsURL(net.JoinHostPort(c.ACMEDomains[0], port))
	case c.https():
		return httpsURL(installation.Dialable(bound))
	default:
		return installation.LocalURL(bound)
	}
}

// httpsURL returns the https URL of HOST:PORT.
func httpsURL(host string) string { return "https://" + strings.TrimSuffix(host, ":443") }
