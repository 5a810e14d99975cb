package broker

import (
	"net"
	"syscall"
	"testing"
)

// A hub that asks for no keep-alive and loses its network was connected for ever: the server's
// listener turns the system's keep-alive off.
func TestKeepAliveOfTheSystem(t *testing.T) {
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
		t.Fatal("the listener's connections have a keep-alive already: this test shows nothing")
	}
	keepAlive(conn)
	idle, interval := option(syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE), option(syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL)
	if count := option(syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT); option(
		syscall.SOL_SOCKET, syscall.SO_KEEPALIVE,
	) != 1 ||
		idle+interval*count != 90 {
		t.Errorf("idle %d s, then %d times every %d s", idle, count, interval)
	}
}
