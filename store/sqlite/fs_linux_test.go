package sqlite

import "testing"

func TestFileSystemsAreToldByTheirNumbers(t *testing.T) {
	// Every Linux has this one, and it is not a disk.
	if name, kind := fileSystem("/proc"); kind != unknownFS || name == "" {
		t.Errorf("/proc is %q, %v", name, kind)
	}
	if name, kind := fileSystem("/dev/shm"); name == "tmpfs" && kind != memoryFS {
		t.Errorf("/dev/shm is %q, %v", name, kind)
	}
	if _, kind := fileSystem("/no/such/file"); kind != unknownFS {
		t.Errorf("what is not there is %v", kind)
	}
	for number, want := range map[int64]fsKind{0x6969: networkFS, 0xff534d42: networkFS, 0x01021997: networkFS, 0x65735546: foreignFS, 0x794c7630: layerFS, 0xef53: localFS} {
		if fileSystems[want][number] == "" {
			t.Errorf("%#x is not %v", number, want)
		}
	}
}
