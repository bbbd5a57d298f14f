// What makes pods of DaemonSets and gives them to nodes, built as kubelet and API server are:
// `controllers manager FLAG...` is kube-controller-manager, `controllers scheduler FLAG...` kube-scheduler.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func command(name string) *cobra.Command {
	switch name {
	case "manager":
		return manager.NewControllerManagerCommand()
	case "scheduler":
		return scheduler.NewSchedulerCommand()
	}
	panic("neither manager nor scheduler: " + name)
}

func main() {
	chosen := command(os.Args[1])
	os.Args = append(os.Args[:1], os.Args[2:]...)
	os.Exit(cli.Run(chosen))
}
