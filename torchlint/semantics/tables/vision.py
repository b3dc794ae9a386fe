"""The builders of models of torchvision that took `pretrained`, and which weights that meant."""

from __future__ import annotations

_MODELS: tuple[tuple[str, str], ...] = (
    (
        "IMAGENET1K_V1",
        (
            "alexnet convnext_tiny convnext_small convnext_base convnext_large densenet121 densenet161 densenet169 "
            "densenet201 efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4 "
            "efficientnet_b5 efficientnet_b6 efficientnet_b7 efficientnet_v2_s efficientnet_v2_m efficientnet_v2_l "
            "googlenet inception_v3 maxvit_t mnasnet0_5 mnasnet0_75 mnasnet1_0 mnasnet1_3 mobilenet_v2 "
            "mobilenet_v3_large mobilenet_v3_small regnet_y_400mf regnet_y_800mf regnet_y_1_6gf regnet_y_3_2gf "
            "regnet_y_8gf regnet_y_16gf regnet_y_32gf regnet_x_400mf regnet_x_800mf regnet_x_1_6gf regnet_x_3_2gf "
            "regnet_x_8gf regnet_x_16gf regnet_x_32gf resnet18 resnet34 resnet50 resnet101 resnet152 resnext50_32x4d "
            "resnext101_32x8d resnext101_64x4d wide_resnet50_2 wide_resnet101_2 shufflenet_v2_x0_5 shufflenet_v2_x1_0 "
            "shufflenet_v2_x1_5 shufflenet_v2_x2_0 squeezenet1_0 squeezenet1_1 swin_t swin_s swin_b swin_v2_t "
            "swin_v2_s swin_v2_b vgg11 vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn vit_b_16 "
            "vit_b_32 vit_l_16 vit_l_32"
        ),
    ),
    (
        "COCO_V1",
        (
            "fasterrcnn_resnet50_fpn fasterrcnn_resnet50_fpn_v2 fasterrcnn_mobilenet_v3_large_320_fpn "
            "fasterrcnn_mobilenet_v3_large_fpn fcos_resnet50_fpn maskrcnn_resnet50_fpn maskrcnn_resnet50_fpn_v2 "
            "retinanet_resnet50_fpn retinanet_resnet50_fpn_v2 ssd300_vgg16 ssdlite320_mobilenet_v3_large"
        ),
    ),
    (
        "C_T_SKHT_V2",
        "raft_large",
    ),
    (
        "C_T_V2",
        "raft_small",
    ),
    (
        "COCO_WITH_VOC_LABELS_V1",
        (
            "deeplabv3_resnet50 deeplabv3_resnet101 deeplabv3_mobilenet_v3_large fcn_resnet50 fcn_resnet101 "
            "lraspp_mobilenet_v3_large"
        ),
    ),
    (
        "KINETICS400_V1",
        "mvit_v1_b mvit_v2_s r3d_18 mc3_18 r2plus1d_18 s3d swin3d_t swin3d_s swin3d_b",
    ),
)
_BACKBONES: tuple[tuple[str, str], ...] = (
    (
        "IMAGENET1K_V1",
        (
            "fasterrcnn_resnet50_fpn fasterrcnn_resnet50_fpn_v2 fasterrcnn_mobilenet_v3_large_320_fpn "
            "fasterrcnn_mobilenet_v3_large_fpn fcos_resnet50_fpn keypointrcnn_resnet50_fpn maskrcnn_resnet50_fpn "
            "maskrcnn_resnet50_fpn_v2 retinanet_resnet50_fpn retinanet_resnet50_fpn_v2 ssdlite320_mobilenet_v3_large"
        ),
    ),
    (
        "IMAGENET1K_FEATURES",
        "ssd300_vgg16",
    ),
    (
        "IMAGENET1K_V1",
        (
            "deeplabv3_resnet50 deeplabv3_resnet101 deeplabv3_mobilenet_v3_large fcn_resnet50 fcn_resnet101 "
            "lraspp_mobilenet_v3_large"
        ),
    ),
)
_WITHOUT_WEIGHTS = ("vit_h_14", "regnet_y_128gf")


def _by_builder(groups: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {builder: member for member, builders in groups for builder in builders.split()}


PRETRAINED: dict[str, dict[str, str]] = {
    "pretrained": {
        **_by_builder(_MODELS),
        "keypointrcnn_resnet50_fpn": "COCO_V1",
        **dict.fromkeys(_WITHOUT_WEIGHTS, ""),
    },
    "pretrained_backbone": _by_builder(_BACKBONES),
}
"""By parameter and builder the name of the weights that True meant; empty where there are none."""
