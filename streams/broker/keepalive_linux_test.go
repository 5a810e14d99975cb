package broker

import (
	"net"
	"syscall"
	"testing"
)

// A hub without an MQTT keep-alive stayed connected forever after it lost its network, because the
// server's listener turns off the keep-alive of TCP.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	config := net.ListenConfig{KeepAlive: -1}
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	hub, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	option := func(level, name int) (value int) {
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err == nil {
			err = raw.Control(
				func(fd uintptr) { value, err = syscall.GetsockoptInt(int(fd), level, name) },
			)
		}
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	if option(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) != 0 {
		t.Fatal("the connection has a keep-alive already, so the test shows nothing")
	}
	keepAlive(conn)
	enabled := option(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE)
	idle := option(syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE)
	interval := option(syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL)
	count := option(syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT)
	if enabled != 1 || idle+interval*count != 90 {
		t.Errorf(
			"keep-alive: got enabled %d, %d s idle and %d probes every %d s, want 90 s in all",
			enabled, idle, count, interval,
		)
	}
}
