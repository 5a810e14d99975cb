package hub

import (
	"net"
	"strings"

	"hubcloud/hubbridge/protocol"
)

// localNetwork describes the first network interface that is up and has an address. It returns nil,
// which the hello states as null, if there is none.
func localNetwork() *protocol.Network {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		n := &protocol.Network{Type: networkType(i.Name), Interface: i.Name}
		for _, a := range addresses {
			address, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			text := address.IP.String()
			switch {
			case address.IP.To4() != nil:
				n.IPAddress = &text
			case n.IPv6Address == nil || address.IP.IsGlobalUnicast():
				n.IPv6Address = &text
			}
		}
		if n.IPAddress == nil && n.IPv6Address == nil {
			continue
		}
		if mac := i.HardwareAddr.String(); mac != "" {
			n.MACAddress = &mac
		}
		return n
	}
	return nil
}

// networkType returns the type of an interface by its name, as Linux names interfaces.
func networkType(name string) string {
	switch {
	case strings.HasPrefix(name, "wl"):
		return "wifi"
	case strings.HasPrefix(name, "ww"):
		return "cellular"
	default:
		return "ethernet"
	}
}
